//! What a command is known to need before anything was found, so that most need nothing more.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use interval_queue_contract::{Micros, QueueName};
use interval_queue_task_contract::{Command, Keep, MAX_HELD, MAX_LISTED, Queue, Read, State, Step, TaskId};

use super::{
    overlay::{Ask, Chosen, Look},
    transaction::Mode,
};

/// So much of the housekeeping a step does at most.
const SHARE: u32 = 200;
/// How many tasks a step admits while a worker holds tasks, unless it lacks more.
const ADMITTED: u32 = 25;
/// So many edges of a task a look tells.
const SOME: u32 = 100;
/// The first step after this time sweeps.
const MAINTENANCE_INTERVAL: Micros = Micros::from_millis(100);
/// So much later than is thought it may be when a step has what it needs.
const LATER: Micros = Micros::from_millis(50);
/// After one that could not, so many steps do not try to go beside others.
const DETERRED: u32 = 16;

/// What the last command of this handle has seen of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueHeader {
    pub(super) number: i64,
    /// When the next step is to sweep, and the server's clock when that was read.
    sweeps: Micros,
    now: Micros,
    read: tokio::time::Instant,
    keep: Keep,
    /// Whether steps may go beside one another: there is no limit, and nothing is to be swept.
    is_plain: bool,
    /// Steps have found less than they wanted.
    is_idle: bool,
    deterred: u32,
    /// It has [floors](super::floors).
    pub(super) has_floors: bool,
}

impl QueueHeader {
    /// About the server's clock.
    pub(super) fn now(&self, clock: Option<Micros>) -> Micros {
        clock.unwrap_or_else(|| self.now + Micros::from_duration(self.read.elapsed()))
    }

    /// Whether the queue as it was seen lets steps go beside one another.
    fn allows_others(&self, clock: Option<Micros>) -> bool {
        self.is_plain && self.now(clock) < self.sweeps
    }
}

/// What this handle has seen of its queues.
#[derive(Clone, Debug, Default)]
pub(super) struct QueueHeaders(Arc<Mutex<HashMap<QueueName, QueueHeader>>>);

impl QueueHeaders {
    fn with<T>(&self, work: impl FnOnce(&mut HashMap<QueueName, QueueHeader>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn of(&self, name: &QueueName) -> Option<QueueHeader> {
        self.with(|known| known.get(name).copied())
    }

    pub(super) fn forget(&self, name: &QueueName) {
        _ = self.with(|known| known.remove(name));
    }

    /// Takes down the row of a queue.
    #[allow(clippy::disallowed_methods, reason = "it tells how old the reading is of the server's clock")]
    pub(super) fn note(&self, name: &QueueName, number: i64, queue: &Queue, now: Micros) {
        self.with(|known| {
            let before = known.get(name);
            let header = QueueHeader {
                number,
                sweeps: queue.seen + MAINTENANCE_INTERVAL,
                now,
                read: tokio::time::Instant::now(),
                keep: queue.settings.keep,
                is_plain: queue.settings.max_running.is_none() && !queue.maintenance_due && queue.seen <= now,
                is_idle: before.is_some_and(|before| before.is_idle),
                deterred: before.map_or(0, |before| before.deterred),
                has_floors: before.is_some_and(|before| before.has_floors),
            };
            known.insert(name.clone(), header);
        });
    }

    pub(super) fn note_idle(&self, name: &QueueName, is_idle: bool) {
        self.with(|known| {
            if let Some(header) = known.get_mut(name) {
                header.is_idle = is_idle;
            }
        });
    }

    pub(super) fn note_floors(&self, name: &QueueName, has_floors: bool) {
        self.with(|known| {
            if let Some(header) = known.get_mut(name) {
                header.has_floors = has_floors;
            }
        });
    }

    /// A step could not go beside others. If that is since a sweep is due, the next ones may.
    pub(super) fn deter(&self, name: &QueueName, clock: Option<Micros>) {
        self.with(|known| {
            if let Some(header) = known.get_mut(name).filter(|header| header.allows_others(clock)) {
                header.deterred = DETERRED;
            }
        });
    }

    /// Whether a step may try to go beside others: what it does is nothing that concerns them.
    pub(super) fn is_plain(&self, name: &QueueName, step: &Step, clock: Option<Micros>) -> bool {
        self.with(|known| {
            let Some(header) = known.get_mut(name) else { return false };
            if header.deterred > 0 {
                header.deterred -= 1;
                return false;
            }
            // Of an idle queue it would get less than it wants.
            step.held.is_none() && !header.is_idle && header.allows_others(clock)
        })
    }
}

/// The looks that a command is known to make; a step that goes beside others does not sweep.
pub(super) fn asks(command: &Command, mode: Mode, header: &QueueHeader, clock: Option<Micros>) -> Vec<Ask> {
    match command {
        Command::Step(step) => {
            let until = header.now(clock) + LATER;
            of_step(step, header, until, mode != Mode::Beside && until >= header.sweeps)
        }
        Command::Add(add) => {
            let ups = add.tasks.iter().flat_map(|task| task.edges.iter().map(|edge| edge.up));
            let names = add.tasks.iter().filter_map(|task| task.unique.as_ref());
            let names = names.map(|unique| Ask::one(Look::ByName(unique.name.clone())));
            each(add.tasks.iter().map(|task| task.id).chain(ups)).chain(distinct(names)).collect()
        }
        Command::Read(Read::Tasks(ids)) => {
            let of = |look: fn(TaskId) -> Look, most| ids.iter().map(move |&id| Ask::some(look(id), most));
            let all = each(ids.iter().copied()).chain(of(Look::Payload, 1)).chain(of(Look::Result, 1));
            let edges = of(|id| Look::To(id, None, None), SOME).chain(of(|id| Look::From(id, None), SOME));
            distinct(all.chain(edges)).chain([Ask::some(Look::Kinds, u32::MAX)]).collect()
        }
        Command::Read(Read::Page { selector, after, limit, .. }) => {
            let chosen = Chosen { selector: selector.clone(), after: *after };
            vec![Ask::some(Look::Select(Box::new(chosen)), *limit)]
        }
        Command::Read(Read::Overview) => {
            let all = [Look::Counts, Look::Kinds, Look::Presences].map(|look| Ask::some(look, u32::MAX));
            let some = [Ask::some(Look::NextScheduled, 10), Ask::some(Look::PausedKeys, MAX_LISTED)];
            all.into_iter().chain(some).collect()
        }
        Command::Read(Read::Upcoming(_)) => vec![Ask::some(Look::Counts, u32::MAX)],
        Command::Read(Read::Workers) => vec![Ask::some(Look::Presences, u32::MAX)],
        Command::Read(Read::Schedules) => vec![Ask::some(Look::Schedules, u32::MAX)],
        Command::Read(Read::KeyLimit(key)) => vec![Ask::one(Look::Key(key.clone()))],
        Command::Read(Read::Ready(kinds)) => vec![Ask::one(Look::Ready(kinds.clone(), None))],
        _ => Vec::new(),
    }
}

fn each(ids: impl IntoIterator<Item = TaskId>) -> impl Iterator<Item = Ask> {
    distinct(ids.into_iter().map(|id| Ask::one(Look::Task(id))))
}

fn distinct(asks: impl Iterator<Item = Ask>) -> impl Iterator<Item = Ask> {
    let mut known = std::collections::HashSet::new();
    asks.filter(move |ask| known.insert(ask.look.clone()))
}

fn of_step(step: &Step, header: &QueueHeader, until: Micros, sweeps: bool) -> Vec<Ask> {
    let completed = step.complete.iter().map(|completion| completion.id);
    let progress = step.progress.iter().map(|(id, ..)| *id);
    let holding = step.held.iter().flatten().map(|(id, _)| *id);
    // The worker first, then its tasks, then those that are ready: all lock in this order.
    let mut asks = vec![Ask::one(Look::Presence(step.worker))];
    asks.extend(each(completed.clone().chain(progress).chain(holding)));
    asks.extend(distinct(completed.map(|id| Ask::one(Look::UnnotifiedFrom(id, 0)))));
    asks.push(Ask::some(Look::Unnotified, SHARE));
    // Any other step finds as many ready tasks as it may lease, and admits none.
    if sweeps || header.is_idle || step.want == 0 && step.complete.is_empty() {
        let most = step.want.clamp(ADMITTED, SHARE);
        asks.push(Ask::until(Look::Scheduled, most, until));
        asks.push(Ask::some(Look::Added, most));
        asks.push(Ask::some(Look::Leases, u32::MAX));
    }
    if step.want > 0 {
        asks.push(Ask::some(Look::Ready(step.kinds.clone(), step.at_least), step.want));
    }
    asks.push(Ask::some(Look::ToStop(step.worker), MAX_HELD));
    let held = match &step.held {
        Some(_) => MAX_HELD,
        None => u32::try_from(step.complete.len()).unwrap_or(MAX_HELD) + 1,
    };
    // What one has that is given something is asked for by nobody.
    if step.want == 0 || step.held.is_some() || header.is_idle {
        asks.push(Ask::some(Look::HeldBy(step.worker), held));
    }
    if !sweeps {
        asks.extend(step.kinds.iter().map(|kind| Ask::one(Look::Kind(kind.clone()))));
    } else {
        asks.push(Ask::some(Look::Kinds, u32::MAX));
        asks.push(Ask::until(Look::Overdue, SHARE, until));
        asks.push(Ask::some(Look::UnevenKeys, SHARE));
        let ends = [State::Done, State::Failed, State::Cancelled, State::Purged];
        asks.extend(ends.map(|end| Ask::until(Look::Ended(end), SHARE, until - header.keep.of(end))));
    }
    if sweeps || header.is_idle {
        asks.push(Ask::some(Look::Schedules, u32::MAX));
    }
    if header.is_idle {
        asks.extend([Look::NextScheduled, Look::NextDeadline].map(|look| Ask::some(look, 10)));
    }
    asks
}
