//! What is known of one queue: the slots that were granted, and what became of them.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use interval_queue_contract::{Change, Command, MAX_LEAD, Micros, Record, Reply, Step, Stepped, Ticket};

use super::Promise;

/// How far back slots are remembered, in microseconds: farther than any two slots can be apart that matter.
const REMEMBERED: i64 = 600_000_000;

/// How far a clock may be stepped back before the record moves with it, in microseconds.
const CLOCK_TOLERANCE: i64 = 1_000_000;

#[derive(Default)]
pub(super) struct Watched {
    /// By instant, ticket and process.
    slots: BTreeMap<(i64, Ticket, usize), Slot>,
    /// All that a ticket was granted, the latest last.
    grants: HashMap<(usize, Ticket), Vec<Given>>,
    started: HashSet<Ticket>,
    last_started: Ticket,
    /// Every interval that was in force.
    intervals: Vec<Micros>,
    ticket: Ticket,
    current: Ticket,
    /// Whether the record may be behind what was seen of it before.
    behind: bool,
    losses: u64,
    paused_since: Option<i64>,
    held_until: Option<i64>,
    /// How far clocks that were stepped back a little may mislead a shard, in microseconds.
    slack: i64,
    /// When the record was last written.
    applied_at: i64,
    longest_lead: Micros,
    /// When the clock was stepped last.
    stepped_at: Option<i64>,
    /// When the store gave the last reply that each process has got.
    known_at: HashMap<usize, i64>,
    pub(super) granted: u64,
    pub(super) early: u64,
    pub(super) inversions: u64,
}

#[derive(Clone, Copy)]
struct Slot {
    weight: u32,
    /// Which interval was in force, as an index.
    era: usize,
}

#[derive(Clone, Copy)]
struct Given {
    slot: i64,
    /// Whether the shard cannot know when its slot is.
    misled: bool,
    weight: u32,
    delivered: bool,
    used: bool,
}

type Found = Result<(), (Promise, String)>;

impl Watched {
    pub(super) fn applied(
        &mut self,
        process: usize,
        command: &Command,
        reply: &Reply,
        record: &Record,
        at: i64,
        granted_again: impl FnMut(),
    ) -> Found {
        if self.intervals.last() != Some(&record.interval) {
            self.intervals.push(record.interval);
        }
        if !matches!(command, Command::Read) {
            self.applied_at = at;
            self.longest_lead = self.longest_lead.max(record.longest_lead);
            self.never_back(command, record)?;
        }
        match (command, reply) {
            (Command::Step(step), Reply::Stepped(stepped)) => self.stepped(process, step, stepped, at, granted_again),
            (Command::Change(change, _), _) => {
                self.changed(change, record, at);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// `ticket` and `current` never go back, neither in the record nor for those who remember.
    fn never_back(&mut self, command: &Command, record: &Record) -> Found {
        if self.behind {
            (self.ticket, self.current) = (Ticket::NONE, Ticket::NONE);
            self.behind = false;
        }
        let memory = match command {
            Command::Step(step) => step.memory,
            Command::Change(_, memory) => *memory,
            _ => return Ok(()),
        };
        for (what, now, before) in [
            ("ticket", record.ticket, self.ticket.max(memory.ticket)),
            ("current", record.current, self.current.max(memory.current)),
        ] {
            if now < before {
                return Err((Promise::NoTimeTravel, format!("{what} went back from {before} to {now}")));
            }
        }
        (self.ticket, self.current) = (record.ticket, record.current);
        Ok(())
    }

    fn changed(&mut self, change: &Change, record: &Record, at: i64) {
        match change {
            Change::Pause => self.paused_since = self.paused_since.or(Some(at)),
            Change::Resume | Change::Reset => {
                self.paused_since = None;
                self.held_until = self.held_until.filter(|_| *change == Change::Resume);
            }
            Change::Hold(_) => {
                let until = at + signed(record.held_until - record.seen_at);
                self.held_until = Some(self.held_until.map_or(until, |held| held.max(until)));
            }
            _ => {}
        }
    }

    fn stepped(
        &mut self,
        process: usize,
        step: &Step,
        stepped: &Stepped,
        at: i64,
        mut granted_again: impl FnMut(),
    ) -> Found {
        for grant in &stepped.grants {
            let slot = at + signed(grant.start_in);
            let ticket = grant.ticket;
            let weight = weight_of(step, stepped, ticket);
            if self.paused_since.is_some() {
                return Err((Promise::Control, format!("ticket {ticket} was granted in a pause")));
            }
            if let Some(held) = self.held_until.filter(|held| slot < *held) {
                return Err((Promise::Control, format!("ticket {ticket} was granted {} µs before a hold ends", held - slot)));
            }
            let given = self.grants.entry((process, ticket)).or_default();
            if let Some(before) = given.iter().rfind(|before| !before.used) {
                granted_again();
                self.slots.remove(&(before.slot, ticket, process));
            }
            given.push(Given { slot, misled: false, weight, delivered: false, used: false });
            self.granted += 1;
            self.insert(process, ticket, slot, weight)?;
        }
        let forgotten = self.slots.range(..(at - REMEMBERED, Ticket::NONE, 0)).map(|(key, _)| *key).next();
        forgotten.map(|key| self.slots.remove(&key));
        Ok(())
    }

    fn insert(&mut self, process: usize, ticket: Ticket, slot: i64, weight: u32) -> Found {
        let key = (slot, ticket, process);
        let era = self.intervals.len().saturating_sub(1);
        let ours = Slot { weight, era };
        let before = self.slots.range(..key).next_back().map(|(key, slot)| (*key, *slot));
        let after = self.slots.range(key..).next().map(|(key, slot)| (*key, *slot));
        let slack = self.slack;
        let close: Vec<_> = [
            before.map(|(key, other)| (key, slot - key.0, self.least(other, ours))),
            after.map(|(key, other)| (key, key.0 - slot, self.least(ours, other))),
        ]
        .into_iter()
        .flatten()
        .filter(|(_, distance, least)| distance + slack < *least)
        .collect();
        self.slots.insert(key, ours);
        // What the record goes on from is the slot it granted last.
        close.iter().for_each(|(key, ..)| drop(self.slots.remove(key)));
        let Some((other, distance, least)) = close.first() else { return Ok(()) };
        self.early += 1;
        if self.early > self.losses {
            let promise = if self.losses > 0 { Promise::NoTimeTravel } else { Promise::Spacing };
            let what = format!(
                "the slots of tickets {ticket} and {} are {distance} µs apart, not {least}: early start {} after {} losses",
                other.1, self.early, self.losses
            );
            return Err((promise, what));
        }
        Ok(())
    }

    /// How far a slot has to be from the next one.
    fn least(&self, earlier: Slot, later: Slot) -> i64 {
        let eras = &self.intervals[earlier.era.min(later.era)..=earlier.era.max(later.era)];
        let interval = eras.iter().min().copied().unwrap_or_default();
        signed(interval * u64::from(earlier.weight))
    }

    /// The reply to a command that was carried out at `applied` has arrived.
    pub(super) fn delivered(&mut self, process: usize, reply: &Reply, applied: i64) {
        let Reply::Stepped(stepped) = reply else { return };
        let before = self.known_at.insert(process, applied);
        // A shard that has heard nothing since the clock was stepped cannot know how old this reply is.
        let misled = self.stepped_at.is_some_and(|stepped| before.is_none_or(|before| before <= stepped));
        for grant in &stepped.grants {
            let slot = applied + signed(grant.start_in);
            let given = self.grants.get_mut(&(process, grant.ticket)).into_iter().flatten();
            for given in given.filter(|given| given.slot == slot) {
                given.delivered = true;
                given.misled = misled;
            }
        }
    }

    /// A job was started at `at`, of which the shard decided at `decided`. Gives the instant from which the next one may
    /// be expected.
    pub(super) fn started(
        &mut self,
        process: usize,
        ticket: Ticket,
        at: i64,
        decided: i64,
        tolerance: Duration,
    ) -> Result<i64, (Promise, String)> {
        let broken = |promise, what: String| Err((promise, format!("ticket {ticket} {what}")));
        let given = self.grants.get_mut(&(process, ticket)).into_iter().flatten().rfind(|given| given.delivered);
        let Some(given) = given else {
            return broken(Promise::AtMostOnce, "was started without a grant".into());
        };
        if std::mem::replace(&mut given.used, true) {
            return broken(Promise::AtMostOnce, "was started twice for one grant".into());
        }
        let given = *given;
        if !self.started.insert(ticket) && self.losses == 0 {
            return broken(Promise::AtMostOnce, "was started by two shards".into());
        }
        if at + self.slack < given.slot {
            return broken(Promise::Spacing, format!("was started {} µs before its slot", given.slot - at));
        }
        let late = decided - given.slot;
        if !given.misled && late > signed(Micros::from_duration(tolerance)) {
            return broken(Promise::AtMostOnce, format!("was started {late} µs after its slot, with {tolerance:?} allowed"));
        }
        if self.paused_since.is_some_and(|since| given.slot > since + signed(MAX_LEAD)) {
            return broken(Promise::Control, "was started longer than the largest lead after a pause".into());
        }
        if ticket < self.last_started {
            self.inversions += 1;
        }
        self.last_started = ticket;
        let interval = self.intervals.last().copied().unwrap_or_default();
        Ok(given.slot + signed(interval * u64::from(given.weight)))
    }

    pub(super) fn lost(&mut self) {
        self.losses += 1;
        self.behind = true;
        self.paused_since = None;
        self.held_until = None;
    }

    pub(super) fn clock_stepped(&mut self, micros: i64, at: i64) {
        self.held_until = None;
        self.stepped_at = Some(at);
        let back = -micros - (at - self.applied_at);
        if micros > 0 {
            // On the store's clock the slots are as far apart as ever. In true time those that are granted already are
            // still to come: one, or as many as the longest lead spans intervals.
            let least = self.intervals.iter().min().copied().unwrap_or(Micros::new(1));
            self.losses += 1 + self.longest_lead.get() / least.get().max(1);
        } else if back < CLOCK_TOLERANCE {
            // The record's clock stands still meanwhile.
            self.slack += (-micros).min(CLOCK_TOLERANCE);
        }
    }
}

/// The weight that was asked for with a ticket.
fn weight_of(step: &Step, stepped: &Stepped, ticket: Ticket) -> u32 {
    let asked = step.ask.iter().find(|ask| ask.ticket == ticket).map(|ask| ask.weight);
    let taken = || {
        let place = usize::try_from(ticket.behind(stepped.taken?.first)).ok()?;
        step.take.as_ref()?.weights.get(place).copied()
    };
    asked.or_else(taken).unwrap_or(1)
}

fn signed(micros: Micros) -> i64 {
    i64::try_from(micros.get()).unwrap_or(i64::MAX)
}
