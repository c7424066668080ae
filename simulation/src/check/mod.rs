//! The checks: grants, replies and starts are held against the promises, event by event.
//!
//! Instants are true time, in microseconds since the beginning. A slot's true instant is as far
//! from the store's reply as the two are apart on the store's clock; only distances between slots
//! are judged on that clock.

mod paid;
mod queue;
mod rate;
mod shard;
mod timeline;

use std::{collections::BTreeMap, fmt, time::Duration};

use interval_queue_contract::{
    Change, Command, Micros, QueueName, Record, Reply, Ticket, judge::OverfullSpan,
};

pub(crate) use queue::Watched;
use shard::Behaviour;

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which promise.
    pub promise: Promise,
    /// What happened.
    pub what: String,
    /// When, in true time since the beginning.
    pub at: Duration,
}

/// The promises that are checked, by their numbers. The architecture document has their full text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Promise {
    /// G1: no span of time has more slots than the rates allow, and no job starts before its slot.
    Spacing = 1,
    /// G2: without faults, jobs start in ticket order.
    Order,
    /// G3: a job of a living shard starts in the end.
    NoLostPlace,
    /// G4: the others keep pace, no matter which shard dies.
    Failure,
    /// G5: a job starts once for a grant, and not much too late.
    AtMostOnce,
    /// G6: while jobs wait, slots are not wasted: no burst overflows.
    Rate,
    /// G7: nothing is left of a shard that has nothing to do.
    Quiet,
    /// G8: pause and hold act on all shards.
    Control,
    /// G9: tickets do not go back, a lost record costs an early start at most, one rewound in secret a burst.
    NoTimeTravel,
    /// G10: an application is told of failures.
    Loud,
    /// T1: what was added is kept, and a batch is added whole.
    Kept = 21,
    /// T2: a task is run by one worker at a time, and an old token changes nothing.
    OneRun,
    /// T3: every task comes to its end, and is not run more often than it may be.
    ToTheEnd,
    /// T4: the most urgent task is leased first.
    Urgency,
    /// T5: runs start at the pace.
    Pace,
    /// T6: never more run than may.
    Limits,
    /// T7: a task starts when its upstreams have ended as its edges ask.
    Edges,
    /// T8: each nominal instant makes one task.
    Schedules,
    /// T9: what operators say acts, and runs hear of it.
    Obeyed,
    /// T10: counts equal what is stored.
    Truth,
    /// T11: idle workers are quiet.
    Idle,
}

impl Promise {
    /// The promise of stored tasks that a judgement names.
    pub(crate) fn of_tasks(judgement: &str) -> Self {
        const ALL: [Promise; 11] = [
            Promise::Kept,
            Promise::OneRun,
            Promise::ToTheEnd,
            Promise::Urgency,
            Promise::Pace,
            Promise::Limits,
            Promise::Edges,
            Promise::Schedules,
            Promise::Obeyed,
            Promise::Truth,
            Promise::Idle,
        ];
        let number =
            judgement.strip_prefix('T').and_then(|text| text.split(':').next()?.parse::<usize>().ok());
        number.and_then(|number| ALL.get(number.checked_sub(1)?)).copied().unwrap_or(Promise::Kept)
    }

    /// What the documents call it: G1 to G10 of the pace, T1 to T11 of stored tasks.
    pub fn name(self) -> String {
        let number = self as u8;
        if number > 20 { format!("T{}", number - 20) } else { format!("G{number}") }
    }
}

/// From a job's arrival in an idle queue to its slot, if nothing goes wrong.
const ROUND_TRIP: Duration = Duration::from_millis(5);

/// The first violation is kept.
#[derive(Default)]
pub(crate) struct Checks {
    pub(crate) violation: Option<Violation>,
    queues: BTreeMap<QueueName, Watched>,
    shards: BTreeMap<usize, Behaviour>,
    /// Maximum time without a start while jobs wait and nothing is wrong. `None`: unlimited.
    pub(crate) longest_stall: Option<Duration>,
    waiting: isize,
    undisturbed_from: Duration,
    /// How often jobs came to wait when none did, and how much time no slot was used while some
    /// did.
    busy_again: u32,
    wasted: Duration,
    /// Shards may have gone idle in a pause, and none was woken since.
    dozing: bool,
}

impl Checks {
    pub(crate) fn violate(&mut self, promise: Promise, at: Duration, what: String) {
        if self.violation.is_none() {
            self.violation = Some(Violation { promise, what, at });
        }
    }

    /// Whatever becomes of the command.
    pub(crate) fn sent(&mut self, process: usize, command: &Command) {
        if let Command::Step(step) = command {
            self.shards.entry(process).or_default().stepped(step);
        }
    }

    /// The store, whose clock shows `clock`, applied a command.
    #[allow(clippy::too_many_arguments, reason = "all that there is to know of it")]
    pub(crate) fn applied(
        &mut self,
        process: usize,
        queue: &QueueName,
        command: &Command,
        reply: &Reply,
        record: Option<&Record>,
        at: Duration,
        clock: Micros,
    ) {
        let watched = self.queues.entry(queue.clone()).or_default();
        watched.rate.is_now(record.is_some(), at);
        if matches!(command, Command::Change(Change::Delete(_), _)) {
            watched.removed();
        }
        let Some(record) = record else { return };
        if record.paused {
            self.dozing = true;
            self.disturbed(at);
        } else if record.held_until > record.seen_at {
            self.disturbed(at + (record.held_until - record.seen_at).to_duration());
        }
        let watched = self.queues.entry(queue.clone()).or_default();
        let shard = self.shards.entry(process).or_default();
        let found = watched.applied(process, command, reply, record, (micros(at), clock), shard);
        if let Err((promise, what)) = found {
            self.violate(promise, at, what);
        }
    }

    pub(crate) fn delivered(
        &mut self,
        process: usize,
        queue: &QueueName,
        reply: &Reply,
        (applied, at): (Duration, Duration),
    ) {
        if let Some(watched) = self.queues.get_mut(queue) {
            if matches!(reply, Reply::Read(None)) {
                watched.rate.reported_without_rate(process, at);
            }
            watched.delivered(process, reply, micros(applied), micros(at));
        }
    }

    /// The shard decided on the start at `decided`.
    pub(crate) fn started(
        &mut self,
        process: usize,
        queue: &QueueName,
        ticket: Ticket,
        at: Duration,
        decided: Duration,
    ) {
        let watched = self.queues.entry(queue.clone()).or_default();
        let tolerance = self.shards.entry(process).or_default().started();
        let started = watched.started(process, ticket, micros(at), micros(decided), tolerance);
        self.took(started, at);
    }

    fn took(&mut self, started: Result<[i64; 2], (Promise, String)>, at: Duration) {
        match started {
            Ok(slot) => {
                let [began, ended] = slot.map(|instant| Duration::from_micros(instant.max(0).unsigned_abs()));
                self.check_stall(at);
                self.wasted += began.saturating_sub(self.undisturbed_from);
                self.undisturbed_from = self.undisturbed_from.max(ended);
            }
            Err((promise, what)) => self.violate(promise, at, what),
        }
    }

    /// A run starts in a slot that the process was granted and has not used, or no rate was in force.
    pub(crate) fn starts_at_rate(
        &mut self,
        process: usize,
        queue: &QueueName,
        leased_at: Duration,
        (at, decided): (Duration, Duration),
    ) {
        let watched = self.queues.entry(queue.clone()).or_default();
        let tolerance = self.shards.entry(process).or_default().started();
        let started = watched.starts_at_pace(process, micros(at), micros(decided), tolerance);
        if started.is_ok() || !watched.rate.lets_start(process, leased_at, decided) {
            self.took(started, at);
        }
    }

    pub(crate) fn rates_are(&mut self, at: Duration, in_force: impl Fn(&QueueName) -> bool) {
        for (queue, watched) in &mut self.queues {
            watched.rate.is_now(in_force(queue), at);
        }
    }

    pub(crate) fn check_stall(&mut self, at: Duration) {
        let Some(longest) = self.longest_stall.filter(|_| self.waiting > 0 && !self.dozing) else { return };
        let stall = at.saturating_sub(self.undisturbed_from);
        if stall > longest {
            let what = format!(
                "{} jobs waited and nothing started for {stall:?}, longer than {longest:?}",
                self.waiting
            );
            self.violate(Promise::Failure, at, what);
        }
    }

    pub(crate) fn waiting(&mut self, more: isize, at: Duration) {
        if self.waiting == 0 {
            self.disturbed(at);
            self.busy_again += 1;
        }
        self.waiting += more;
    }

    pub(crate) fn disturbed(&mut self, until: Duration) {
        self.undisturbed_from = self.undisturbed_from.max(until);
    }

    pub(crate) fn woken(&mut self, at: Duration) {
        self.dozing = false;
        self.disturbed(at);
    }

    pub(crate) fn each_queue(&mut self, at: Duration, happens: impl Fn(&mut Watched, i64)) {
        self.queues.values_mut().for_each(|watched| happens(watched, micros(at)));
    }

    pub(crate) fn failed(&mut self, process: usize, is_reported: bool) {
        if is_reported {
            self.shards.entry(process).or_default().failures += 1;
        }
    }

    pub(crate) fn reported(&mut self, process: usize) {
        self.shards.entry(process).or_default().reported += 1;
    }

    /// Holds what applications were notified of against what failed.
    pub(crate) fn check_reported(&mut self, at: Duration) {
        let silent = self.shards.iter().find(|(_, shard)| shard.reported != shard.failures);
        let silent = silent.map(|(process, shard)| (*process, shard.failures, shard.reported));
        if let Some((process, failures, reported)) = silent {
            let what =
                format!("process {process} was notified of {reported} of {failures} failed steps and looks");
            self.violate(Promise::Loud, at, what);
        }
    }

    /// Checks what must hold if nothing went wrong.
    pub(crate) fn check_faultless(&mut self, at: Duration) {
        let inversions = self.inversions();
        if inversions > 0 {
            let what = format!("{inversions} jobs started after one with a higher ticket");
            self.violate(Promise::Order, at, what);
        }
        let most = ROUND_TRIP * self.busy_again;
        if self.wasted > most {
            let what = format!("{:?} were wasted while jobs waited, more than {most:?}", self.wasted);
            self.violate(Promise::Rate, at, what);
        }
    }

    /// Numbers of granted slots, and of those that came early after a loss.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.queues
            .values()
            .fold((0, 0), |(slots, early), watched| (slots + watched.granted, early + watched.early))
    }

    /// Pairs of neighbours that started in another order than their tickets.
    pub(crate) fn inversions(&self) -> u64 {
        self.queues.values().map(|watched| watched.inversions).sum()
    }
}

pub(crate) fn micros(time: Duration) -> i64 {
    signed(Micros::from_duration(time))
}

fn signed(micros: Micros) -> i64 {
    i64::try_from(micros.get()).unwrap_or(i64::MAX)
}

impl fmt::Display for timeline::Close {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((first, last), OverfullSpan { places, span, least, rate }) = (self.tickets, self.crowd);
        let count = places.1 - places.0 + 1;
        write!(f, "{count} tickets, {first} to {last}, are within {span} µs, not {least} ({rate})")
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at.as_secs_f64() * 1000.0;
        write!(f, "{} ({:?}) at {at:.3} ms: {}", self.promise.name(), self.promise, self.what)
    }
}
