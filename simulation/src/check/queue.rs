//! What is known of one queue: the slots that were granted, and what became of them.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use interval_queue_contract::{Change, Command, MAX_LEAD, Micros, Record, Reply, Step, Stepped, Ticket};

use super::{
    Promise,
    shard::Behaviour,
    signed,
    timeline::{Close, Slot, Timeline},
};

/// The longest that a round trip takes, in microseconds: the simulated network's worst delays and a little
/// more.
const ROUND_TRIP: i64 = 4_000_000;

#[derive(Default)]
pub(crate) struct Watched {
    granted_slots: Timeline,
    used_slots: Timeline,
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
    /// How many starts may be early after these losses.
    may_be_early: u64,
    paused_since: Option<i64>,
    held_until: Option<i64>,
    /// How far clocks that were stepped back a little may mislead a shard, in microseconds.
    slack: i64,
    /// When the record's clock last moved on.
    moved_on_at: i64,
    /// Where the clock stood after each step, against where it would stand without any, in microseconds.
    displaced: Vec<i64>,
    /// The longest way back that a round trip may have hidden.
    unnoticed: i64,
    stepped_back: bool,
    /// Whether changes may not be in order any more.
    misnumbered: bool,
    /// When the clock was stepped last.
    stepped_at: Option<i64>,
    /// How well each process knows the clock.
    known: HashMap<usize, Known>,
    pub(super) granted: u64,
    pub(super) early: u64,
    pub(super) inversions: u64,
}

#[derive(Clone, Copy)]
struct Given {
    slot: i64,
    /// How much later than it is the shard may believe its slot to be.
    uncertain: i64,
    /// When the grant arrived.
    heard_at: i64,
    leaves: Slot,
    delivered: bool,
    used: bool,
}

/// How well a process can know the store's clock: as well as by its quickest reply since that was stepped.
#[derive(Clone, Copy)]
struct Known {
    since: Option<i64>,
    /// The quickest reply but for the last one, and the last one, in microseconds.
    before: i64,
    last: i64,
    heard_at: i64,
}

impl Known {
    fn uncertain(&self) -> i64 {
        self.before.min(self.last)
    }
}

/// Nothing is known.
const UNKNOWN: Known = Known { since: None, before: i64::MAX, last: i64::MAX, heard_at: 0 };

type Found = Result<(), (Promise, String)>;

impl Watched {
    pub(super) fn applied(
        &mut self,
        process: usize,
        command: &Command,
        reply: &Reply,
        record: &Record,
        (at, clock): (i64, Micros),
        shard: &mut Behaviour,
    ) -> Found {
        if self.intervals.last() != Some(&record.interval) {
            self.intervals.push(record.interval);
        }
        if !matches!(command, Command::Read) {
            // A record whose clock stands still, since it was stepped back a little, misleads by that much.
            if record.seen_at > clock {
                self.stepped_at = Some(at);
                self.slack = self.slack.max(at - self.moved_on_at);
            } else {
                self.moved_on_at = at;
            }
            self.never_back(command, record)?;
        }
        match (command, reply) {
            (Command::Step(step), Reply::Stepped(stepped)) => self.stepped(process, step, stepped, at, shard),
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
        if self.misnumbered {
            (self.paused_since, self.held_until) = (None, None);
            return;
        }
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
        shard: &mut Behaviour,
    ) -> Found {
        for grant in &stepped.grants {
            let slot = at + signed(grant.start_in);
            let ticket = grant.ticket;
            let asked = step.asked(stepped.taken).find(|ask| ask.ticket == ticket);
            let weight = asked.map_or(1, |ask| ask.weight);
            if self.paused_since.is_some() {
                return Err((Promise::Control, format!("ticket {ticket} was granted in a pause")));
            }
            if let Some(held) = self.held_until.filter(|held| slot < *held) {
                let what = format!("ticket {ticket} was granted {} µs before a hold ends", held - slot);
                return Err((Promise::Control, what));
            }
            let given = self.grants.entry((process, ticket)).or_default();
            if let Some(before) = given.iter().rfind(|before| !before.used) {
                shard.overruns += 1;
                self.granted_slots.remove((before.slot, ticket, process));
            }
            let era = self.intervals.len().saturating_sub(1);
            let leaves = Slot { weight, era, number: self.granted };
            given.push(Given { slot, uncertain: 0, heard_at: 0, leaves, delivered: false, used: false });
            self.granted += 1;
            let close =
                self.granted_slots.insert((slot, ticket, process), leaves, &self.intervals, self.slack);
            if let (Some(Close { tickets: (ours, other), distance, least }), 0) = (close, self.losses) {
                let what =
                    format!("the slots of tickets {ours} and {other} are {distance} µs apart, not {least}");
                return Err((Promise::Spacing, what));
            }
        }
        self.granted_slots.forget_before(at);
        self.used_slots.forget_before(at);
        Ok(())
    }

    /// The reply to a command that was carried out at `applied` has arrived.
    pub(super) fn delivered(&mut self, process: usize, reply: &Reply, applied: i64, at: i64) {
        let Reply::Stepped(stepped) = reply else { return };
        let known = self.known.entry(process).or_insert(UNKNOWN);
        if known.since != self.stepped_at {
            *known = Known { since: self.stepped_at, ..UNKNOWN };
        }
        // What was said before the clock was stepped tells nothing of it.
        let last =
            if self.stepped_at.is_some_and(|stepped| applied <= stepped) { i64::MAX } else { at - applied };
        // What it knew before has aged: both clocks drift, and timers have a grain of a millisecond.
        let before = known.uncertain().saturating_add((at - known.heard_at) / 1_000 + 2_000);
        *known = Known { before, last, heard_at: at, ..*known };
        let uncertain = known.uncertain();
        for grant in &stepped.grants {
            let slot = applied + signed(grant.start_in);
            let given = self.grants.get_mut(&(process, grant.ticket)).into_iter().flatten();
            for given in given.filter(|given| given.slot == slot) {
                given.delivered = true;
                (given.uncertain, given.heard_at) = (uncertain, at);
            }
        }
    }

    /// A job was started at `at`, of which the shard decided at `decided`. Gives its slot and the instant
    /// from which the next one may be expected.
    pub(super) fn started(
        &mut self,
        process: usize,
        ticket: Ticket,
        at: i64,
        decided: i64,
        tolerance: Duration,
    ) -> Result<[i64; 2], (Promise, String)> {
        let broken = |promise, what: String| Err((promise, format!("ticket {ticket} {what}")));
        let given =
            self.grants.get_mut(&(process, ticket)).into_iter().flatten().rfind(|given| given.delivered);
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
        if at + self.slack + self.unnoticed < given.slot {
            return broken(Promise::Spacing, format!("was started {} µs before its slot", given.slot - at));
        }
        let late = (decided - given.slot).saturating_sub(given.uncertain);
        if late > signed(Micros::from_duration(tolerance)) {
            return broken(
                Promise::AtMostOnce,
                format!("was started {late} µs after its slot, with {tolerance:?} allowed"),
            );
        }
        if self.paused_since.is_some_and(|since| given.slot > since + signed(MAX_LEAD)) {
            return broken(Promise::Control, "was started longer than the largest lead after a pause".into());
        }
        let close =
            self.used_slots.insert((given.slot, ticket, process), given.leaves, &self.intervals, self.slack);
        if let Some(Close { tickets: (_, other), distance, least }) = close {
            self.early += 1;
            if self.early > self.may_be_early {
                let (early, losses) = (self.early, self.losses);
                let what = format!(
                    "and {other} started in slots {distance} µs apart, not {least}: {early} early after {losses} losses"
                );
                return broken(Promise::NoTimeTravel, what);
            }
        }
        if ticket < self.last_started {
            self.inversions += 1;
        }
        self.last_started = ticket;
        let interval = self.intervals.last().copied().unwrap_or_default();
        Ok([given.slot, given.slot + signed(interval * u64::from(given.leaves.weight))])
    }

    /// The record may know nothing any more of the last slot, nor of those that were granted and have not
    /// come: each may get a neighbour that is too close.
    fn allow_early(&mut self, at: i64) {
        self.losses += 1;
        self.may_be_early += 1 + self.granted_slots.to_come(at);
    }

    /// The process was stopped for `time` in the middle of a step, perhaps before it took in what had just
    /// arrived.
    pub(crate) fn stopped_in_step(&mut self, process: usize, at: i64, time: i64) {
        let Some(known) = self.known.get_mut(&process).filter(|known| known.heard_at == at) else { return };
        known.last = known.last.saturating_add(time);
        let uncertain = known.uncertain();
        let given =
            self.grants.iter_mut().filter(|((owner, _), _)| *owner == process).flat_map(|(_, given)| given);
        given.filter(|given| given.heard_at == at).for_each(|given| given.uncertain = uncertain);
    }

    /// The process is dead: slots that it was granted and that have not come are free.
    pub(crate) fn killed(&mut self, process: usize, at: i64) {
        self.granted_slots.forget_process(process, at);
    }

    pub(crate) fn lost(&mut self, at: i64) {
        self.allow_early(at);
        // What was changed before may then be numbered higher than what is changed after.
        self.misnumbered |= self.stepped_back;
        self.behind = true;
        self.paused_since = None;
        self.held_until = None;
    }

    pub(crate) fn clock_stepped(&mut self, micros: i64, at: i64) {
        self.held_until = None;
        self.stepped_at = Some(at);
        // A shard cannot tell a short way back, by one step or by several, from a slow reply.
        let now = self.displaced.last().copied().unwrap_or(0) + micros;
        let back = self.displaced.iter().chain([&0]).map(|before| before - now);
        self.unnoticed = back.filter(|back| *back < ROUND_TRIP).fold(self.unnoticed, i64::max);
        self.displaced.push(now);
        if micros > 0 {
            // On the store's clock the slots are as far apart as ever.
            self.allow_early(at);
        } else {
            self.stepped_back = true;
            self.misnumbered |= self.losses > 0;
        }
    }
}
