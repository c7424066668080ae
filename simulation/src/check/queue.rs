//! The history of one queue: granted slots, and what became of them.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use interval_queue_contract::{
    Change, Changed, Command, MAX_LEAD, Micros, Record, Reply, Step, Stepped, Ticket,
    judge::{Eras, Slot},
};

use super::{Promise, paid::Paid, rate::Force, shard::Behaviour, signed, timeline::Timeline};

/// In microseconds: the simulated network's worst delays and a little more.
const ROUND_TRIP: i64 = 4_000_000;

/// Time until all that may start have asked.
const ASKING: Micros = Micros::from_millis(5);

#[derive(Default)]
pub(crate) struct Watched {
    granted_slots: Timeline,
    used_slots: Timeline,
    /// All grants of a ticket, the latest last.
    grants: HashMap<(usize, Ticket), Vec<Given>>,
    started: HashSet<Ticket>,
    last_started: (Ticket, i64),
    eras: Eras,
    paid: Paid,
    ticket: Ticket,
    current: Ticket,
    /// Whether the record may be behind what was seen of it.
    behind: bool,
    losses: u64,
    /// How many starts may be early after these losses.
    may_be_early: u64,
    paused_since: Option<i64>,
    held_until: Option<i64>,
    /// In microseconds: how far small clock steps back may mislead a shard.
    slack: i64,
    moved_on_at: i64,
    /// Offset of the clock after each step, in microseconds.
    displaced: Vec<i64>,
    /// The record's clock when last written, and how far it was moved back in all.
    seen_at: i64,
    moved_back: i64,
    /// How far that clock, never moved back, would be ahead of true time then.
    ahead: i64,
    /// Total of steps forward, in microseconds.
    forward: i64,
    unnoticed: i64,
    stepped_back: bool,
    /// Whether changes may not be in order any more.
    misnumbered: bool,
    stepped_at: Option<i64>,
    known: HashMap<usize, Known>,
    pub(super) rate: Force,
    pub(super) granted: u64,
    pub(super) early: u64,
    pub(super) inversions: u64,
}

#[derive(Clone, Copy)]
struct Given {
    slot: i64,
    /// The slot on the store's clock.
    store_slot: Micros,
    forward: i64,
    /// How much later than it is the shard may believe its slot to be.
    uncertain: i64,
    received_at: i64,
    /// For the judge, on the record's clock if never moved back.
    what: Slot,
    /// Number in the order of grants.
    number: u64,
    delivered: bool,
    used: bool,
}

/// As well as by its quickest reply since the clock was stepped.
#[derive(Clone, Copy)]
struct Known {
    since: Option<i64>,
    /// The quickest reply but the last, and the last, in microseconds.
    before: i64,
    last: i64,
    received_at: i64,
}

impl Known {
    fn uncertain(&self) -> i64 {
        self.before.min(self.last)
    }
}

const UNKNOWN: Known = Known { since: None, before: i64::MAX, last: i64::MAX, received_at: 0 };

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
        self.eras.enter(record.meters.rates());
        if !matches!(command, Command::Read) {
            // A record whose clock stands still after a small step back misleads by that much.
            if record.seen_at > clock {
                self.stepped_at = Some(at);
                self.slack = self.slack.max(at - self.moved_on_at);
            } else {
                self.moved_on_at = at;
            }
            let before = std::mem::replace(&mut self.seen_at, signed(record.seen_at));
            if self.behind || self.seen_at < before {
                // The record does not know how much time has passed.
                self.moved_back = self.moved_back.max(at + self.ahead - self.seen_at);
            }
            self.ahead = self.seen_at + self.moved_back - at;
            self.never_back(command, record)?;
        }
        match (command, reply) {
            (Command::Step(step), Reply::Stepped(stepped)) => self.stepped(process, step, stepped, at, shard),
            (Command::Change(change, _), Reply::Changed(Changed { before, .. })) => {
                if before.is_none() && self.losses > 0 {
                    // A process without a memory has opened a new queue, with a full burst.
                    self.may_be_early += u64::from(self.eras.largest_burst()) - 1;
                }
                self.changed(change, record, at);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// `ticket` and `current` never go back, in the record or in memories.
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

    /// A record made from now on knows nothing of earlier grants.
    pub(super) fn removed(&mut self) {
        self.behind = true;
        (self.granted_slots, self.used_slots) = (Timeline::default(), Timeline::default());
        (self.paused_since, self.held_until) = (None, None);
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
            let slot = at + signed(grant.slot) - signed(stepped.memory.at);
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
            let before = given.iter().rfind(|before| !before.used).copied();
            // The slot is the same if the reply was lost.
            let again = before.filter(|before| before.store_slot == grant.slot && !before.delivered);
            if let Some(before) = before {
                shard.overruns += u32::from(again.is_none());
                self.granted_slots.remove((before.what.at, ticket, process));
            }
            let new = (self.eras.last(), self.granted);
            let (era, number) = again.map_or(new, |before| (before.what.era, before.number));
            let what = Slot { at: signed(grant.slot) + self.moved_back, weight, era };
            given.push(Given {
                slot,
                store_slot: grant.slot,
                forward: self.forward,
                uncertain: 0,
                received_at: 0,
                what,
                number,
                delivered: false,
                used: false,
            });
            self.granted += u64::from(again.is_none());
            let key = (what.at, ticket, process);
            let close = self.granted_slots.insert(key, number, what, &self.eras);
            if let (Some(close), 0) = (close, self.losses) {
                return Err((Promise::Spacing, format!("the slots of {close}")));
            }
        }
        self.granted_slots.forget_before(at + self.ahead);
        self.used_slots.forget_before(at + self.ahead);
        Ok(())
    }

    pub(super) fn delivered(&mut self, process: usize, reply: &Reply, applied: i64, at: i64) {
        let Reply::Stepped(stepped) = reply else { return };
        let known = self.known.entry(process).or_insert(UNKNOWN);
        if known.since != self.stepped_at {
            *known = Known { since: self.stepped_at, ..UNKNOWN };
        }
        // Replies from before a clock step are worthless.
        let last =
            if self.stepped_at.is_some_and(|stepped| applied <= stepped) { i64::MAX } else { at - applied };
        // Knowledge ages: both clocks drift, and timers have a grain of a millisecond.
        let before = known.uncertain().saturating_add((at - known.received_at) / 1_000 + 2_000);
        *known = Known { before, last, received_at: at, ..*known };
        let uncertain = known.uncertain();
        for grant in &stepped.grants {
            let given = self.grants.get_mut(&(process, grant.ticket)).into_iter().flatten();
            for given in given.filter(|given| given.store_slot == grant.slot) {
                given.delivered = true;
                (given.uncertain, given.received_at) = (uncertain, at);
            }
        }
    }

    /// Returns the slot, and from when on the next one may be expected.
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
        // A clock stepped forward may have reached the slot before.
        let brought = self.forward - given.forward;
        if at + self.slack + self.unnoticed + brought < given.slot {
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
        let key = (given.what.at, ticket, process);
        let close = self.used_slots.insert(key, given.number, given.what, &self.eras);
        if let Some(close) = close {
            self.early += 1;
            if self.early > self.may_be_early {
                let (early, losses) = (self.early, self.losses);
                let what =
                    format!("was started, and the slots of {close}: {early} early after {losses} losses");
                return broken(Promise::NoTimeTravel, what);
            }
        }
        // Of a burst, tickets that are due together start in the order in which they ask.
        let together = self.eras.rates(given.what.era).first().is_some_and(|rate| rate.burst > 1);
        let since = given.slot - self.last_started.1;
        if ticket < self.last_started.0 && !(together && since <= signed(ASKING)) {
            self.inversions += 1;
        }
        self.last_started = (ticket, given.slot);
        let slot = Slot { at: given.slot, ..given.what };
        Ok([given.slot, self.paid.next(&slot, self.eras.rates(self.eras.last()))])
    }

    /// The record may have forgotten so many slots, and granted ones that have not come: for each
    /// of them one may be too many.
    fn allow_early(&mut self, slots: u64, at: i64) {
        self.losses += 1;
        self.may_be_early += slots + self.granted_slots.to_come(at + self.ahead);
    }

    /// A run of a stored task started in one of the slots granted to this process that have come,
    /// are not too late and not used. Which one is unknown: the slot that expires first leaves the
    /// others to later runs. Returns the same as [`started`](Self::started).
    pub(super) fn starts_at_pace(
        &mut self,
        process: usize,
        at: i64,
        decided: i64,
        tolerance: Duration,
    ) -> Result<[i64; 2], (Promise, String)> {
        let (tolerance, forward) = (signed(Micros::from_duration(tolerance)), self.forward);
        let by = at + self.slack + self.unnoticed;
        let of_process = self.grants.iter_mut().filter(|((owner, _), _)| *owner == process);
        let unused = of_process.flat_map(|(_, given)| given).filter(|given| given.delivered && !given.used);
        let come = unused.filter(|given| given.slot <= by + forward - given.forward);
        let in_time =
            come.filter(|given| (decided - given.slot).saturating_sub(given.uncertain) <= tolerance);
        let Some(given) = in_time.min_by_key(|given| given.slot.saturating_add(given.uncertain)) else {
            return Err((Promise::Pace, format!("process {process} starts a run without a slot")));
        };
        given.used = true;
        let slot = Slot { at: given.slot, ..given.what };
        Ok([given.slot, self.paid.next(&slot, self.eras.rates(self.eras.last()))])
    }

    /// Stopped in the middle of a step, perhaps before it took in what had just arrived.
    pub(crate) fn stopped_in_step(&mut self, process: usize, at: i64, time: i64) {
        let Some(known) = self.known.get_mut(&process).filter(|known| known.received_at == at) else {
            return;
        };
        known.last = known.last.saturating_add(time);
        let uncertain = known.uncertain();
        let given =
            self.grants.iter_mut().filter(|((owner, _), _)| *owner == process).flat_map(|(_, given)| given);
        given.filter(|given| given.received_at == at).for_each(|given| given.uncertain = uncertain);
    }

    /// Granted slots that have not come are free.
    pub(crate) fn killed(&mut self, process: usize, at: i64) {
        self.granted_slots.forget_process(process, at + self.ahead);
    }

    /// The record is gone or not the latest. If the server does not report it, shards that notice
    /// it may find a full burst.
    pub(crate) fn lost(&mut self, is_reported: bool, at: i64) {
        let unknown = if is_reported { 1 } else { self.eras.largest_burst() };
        self.allow_early(unknown.into(), at);
        // Earlier changes may then have higher numbers than later ones.
        self.misnumbered |= self.stepped_back;
        self.behind = true;
        self.paused_since = None;
        self.held_until = None;
    }

    pub(crate) fn clock_stepped(&mut self, micros: i64, at: i64) {
        self.held_until = None;
        self.stepped_at = Some(at);
        // A shard cannot distinguish small steps back from a slow reply.
        let now = self.displaced.last().copied().unwrap_or(0) + micros;
        let back = self.displaced.iter().chain([&0]).map(|before| before - now);
        self.unnoticed = back.filter(|back| *back < ROUND_TRIP).fold(self.unnoticed, i64::max);
        self.displaced.push(now);
        self.forward += micros.max(0);
        if micros < 0 {
            self.stepped_back = true;
            self.misnumbered |= self.losses > 0;
        }
    }
}
