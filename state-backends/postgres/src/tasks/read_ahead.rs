//! Read-ahead: the lookups that a command probably needs, so that most commands need no second
//! round of reads.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use interval_queue_contract::{Micros, QueueName};
use interval_queue_task_contract::{
    Command, Cursor, Keep, MAX_HELD, MAX_LISTED, MAX_SCANNED, Order, Queue, Read, Selector, State, Step,
    TaskId, index,
    rules::{BUDGET_PART, MAINTENANCE_BUDGET, MAINTENANCE_INTERVAL, MAX_LISTED_ROWS},
};

use super::{
    transaction::Mode,
    view::{Lookup, Selection, Target},
};

/// Rows to read for a poll that may admit tasks.
const MIN_ADMITTED: u32 = MAINTENANCE_BUDGET / BUDGET_PART;
/// For a delay between the estimated clock and the start of the transaction.
const CLOCK_MARGIN: Micros = Micros::from_millis(50);
/// After a failed attempt under the shared lock.
const EXCLUSIVE_STEPS: u32 = 16;

/// As of the last command of this handle.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueHeader {
    pub(super) number: i64,
    /// An instant of the server's clock.
    maintenance_at: Micros,
    now: Micros,
    read: tokio::time::Instant,
    keep: Keep,
    /// There is no limit, and no maintenance is due.
    is_shareable: bool,
    /// The last poll found fewer tasks than it wanted.
    is_idle: bool,
    exclusive_steps: u32,
    /// See [low-water marks](super::low_marks).
    pub(super) has_low_marks: bool,
}

impl QueueHeader {
    /// Estimates the server's clock.
    pub(super) fn now(&self, clock: Option<Micros>) -> Micros {
        clock.unwrap_or_else(|| self.now + Micros::from_duration(self.read.elapsed()))
    }

    fn allows_sharing(&self, clock: Option<Micros>) -> bool {
        self.is_shareable && self.now(clock) < self.maintenance_at
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct QueueHeaders(Arc<Mutex<HashMap<QueueName, QueueHeader>>>);

impl QueueHeaders {
    fn with<T>(&self, work: impl FnOnce(&mut HashMap<QueueName, QueueHeader>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn of(&self, name: &QueueName) -> Option<QueueHeader> {
        self.with(|headers| headers.get(name).copied())
    }

    pub(super) fn forget(&self, name: &QueueName) {
        _ = self.with(|headers| headers.remove(name));
    }

    #[allow(clippy::disallowed_methods, reason = "measures the age of a reading of the server's clock")]
    pub(super) fn note(&self, name: &QueueName, number: i64, queue: &Queue, now: Micros) {
        self.with(|headers| {
            let before = headers.get(name);
            let header = QueueHeader {
                number,
                maintenance_at: queue.seen + MAINTENANCE_INTERVAL,
                now,
                read: tokio::time::Instant::now(),
                keep: queue.settings.keep,
                is_shareable: queue.settings.max_running.is_none()
                    && !queue.maintenance_due
                    && queue.seen <= now,
                is_idle: before.is_some_and(|before| before.is_idle),
                exclusive_steps: before.map_or(0, |before| before.exclusive_steps),
                has_low_marks: before.is_some_and(|before| before.has_low_marks),
            };
            headers.insert(name.clone(), header);
        });
    }

    pub(super) fn note_idle(&self, name: &QueueName, is_idle: bool) {
        self.with(|headers| {
            if let Some(header) = headers.get_mut(name) {
                header.is_idle = is_idle;
            }
        });
    }

    pub(super) fn note_low_marks(&self, name: &QueueName, has_low_marks: bool) {
        self.with(|headers| {
            if let Some(header) = headers.get_mut(name) {
                header.has_low_marks = has_low_marks;
            }
        });
    }

    /// Has no effect if maintenance is due: later polls may succeed.
    pub(super) fn prefer_exclusive(&self, name: &QueueName, clock: Option<Micros>) {
        self.with(|headers| {
            if let Some(header) = headers.get_mut(name).filter(|header| header.allows_sharing(clock)) {
                header.exclusive_steps = EXCLUSIVE_STEPS;
            }
        });
    }

    /// The poll probably touches only its own rows.
    pub(super) fn may_share(&self, name: &QueueName, step: &Step, clock: Option<Micros>) -> bool {
        self.with(|headers| {
            let Some(header) = headers.get_mut(name) else { return false };
            if header.exclusive_steps > 0 {
                header.exclusive_steps -= 1;
                return false;
            }
            // In an idle queue the poll would get less than it wants, and fail.
            step.held.is_none() && !header.is_idle && header.allows_sharing(clock)
        })
    }
}

/// A poll under the shared lock does no maintenance.
pub(super) fn lookups(
    command: &Command,
    mode: Mode,
    header: &QueueHeader,
    clock: Option<Micros>,
) -> Vec<Lookup> {
    match command {
        Command::Step(step) => {
            let until = header.now(clock) + CLOCK_MARGIN;
            step_lookups(step, header, until, mode != Mode::Shared && until >= header.maintenance_at)
        }
        Command::Add(add) => {
            let ups = add.tasks.iter().flat_map(|task| task.edges.iter().map(|edge| edge.up));
            let names = add.tasks.iter().filter_map(|task| task.unique.as_ref());
            let names = names.map(|unique| Lookup::look::<index::Name>(&(unique.name.clone(),), None, 1));
            each(add.tasks.iter().map(|task| task.id).chain(ups)).chain(distinct(names)).collect()
        }
        Command::Read(Read::Tasks(ids)) => {
            let of = |target: fn(TaskId) -> Target, limit| {
                ids.iter().map(move |&id| Lookup::some(target(id), limit))
            };
            let bodies = [Target::Payload as fn(TaskId) -> Target, Target::Result, Target::Log];
            let bodies = bodies.into_iter().flat_map(|target| of(target, 1));
            let all = each(ids.iter().copied()).chain(bodies);
            let edges = of(|id| Target::To(id, None, None), MAX_LISTED_ROWS)
                .chain(of(|id| Target::From(id, None), MAX_LISTED_ROWS));
            distinct(all.chain(edges)).chain([Lookup::some(Target::Kinds, u32::MAX)]).collect()
        }
        Command::Read(Read::Page { selector, after, limit, .. }) => selected(selector, *after, *limit),
        Command::Read(Read::Count { selector, after: None }) if selector.is_counted() => {
            vec![Lookup::some(Target::Counts, u32::MAX)]
        }
        Command::Read(Read::Count { selector, after }) => {
            selected(selector, after.unwrap_or(Order::Oldest.start()), MAX_SCANNED)
        }
        Command::Read(Read::Overview) => {
            let all = [Target::Counts, Target::Kinds, Target::Presences]
                .map(|target| Lookup::some(target, u32::MAX));
            let some = [Lookup::first::<index::Scheduled>(), Lookup::some(Target::PausedKeys, MAX_LISTED)];
            all.into_iter().chain(some).collect()
        }
        Command::Read(Read::Upcoming(_)) => vec![Lookup::some(Target::Counts, u32::MAX)],
        Command::Read(Read::Workers) => vec![Lookup::some(Target::Presences, u32::MAX)],
        Command::Read(Read::Schedules) => vec![Lookup::some(Target::Schedules, u32::MAX)],
        Command::Read(Read::KeyLimit(key)) => vec![Lookup::one(Target::Key(key.clone()))],
        Command::Read(Read::Ready(kinds)) => vec![Lookup::one(Target::Ready(kinds.clone(), None))],
        _ => Vec::new(),
    }
}

/// The counts exclude kinds and states without tasks.
fn selected(selector: &Selector, after: Cursor, limit: u32) -> Vec<Lookup> {
    let after = selector.begin(after);
    let selection = Selection { selector: selector.clone(), after };
    let mut lookups = vec![Lookup::some(Target::Select(Box::new(selection)), limit)];
    if !selector.kinds.is_empty() || !selector.states.is_empty() {
        lookups.push(Lookup::some(Target::Counts, u32::MAX));
    }
    if selector.payload.is_some() && selector.ids.is_empty() {
        lookups.push(Lookup::one(Target::ScanEnd(after)));
    }
    lookups
}

fn each(ids: impl IntoIterator<Item = TaskId>) -> impl Iterator<Item = Lookup> {
    distinct(ids.into_iter().map(|id| Lookup::one(Target::Task(id))))
}

fn distinct(lookups: impl Iterator<Item = Lookup>) -> impl Iterator<Item = Lookup> {
    let mut seen = std::collections::HashSet::new();
    lookups.filter(move |lookup| seen.insert(lookup.target.clone()))
}

fn step_lookups(step: &Step, header: &QueueHeader, until: Micros, is_maintenance_due: bool) -> Vec<Lookup> {
    let completed = step.complete.iter().map(|completion| completion.id);
    let progress = step.progress.iter().map(|(id, ..)| *id);
    let logging = step.log.iter().map(|log| log.id);
    let holding = step.held.iter().flatten().map(|(id, _)| *id);
    // The worker, then its tasks, then ready tasks: all transactions lock in this order.
    let mut lookups = vec![Lookup::one(Target::Presence(step.worker))];
    lookups.extend(each(completed.clone().chain(progress).chain(logging.clone()).chain(holding)));
    lookups.extend(distinct(logging.map(|id| Lookup::one(Target::Log(id)))));
    lookups.extend(distinct(completed.map(|id| Lookup::one(Target::UnnotifiedFrom(id, 0)))));
    lookups.push(Lookup::look::<index::Unnotified>(&(), None, MAINTENANCE_BUDGET));
    // All other polls find enough ready tasks, and admit none.
    if is_maintenance_due || header.is_idle || step.want == 0 && step.complete.is_empty() {
        let limit = step.limit().clamp(MIN_ADMITTED, MAINTENANCE_BUDGET);
        lookups.push(Lookup::look::<index::Scheduled>(&(), Some(until), limit));
        lookups.push(Lookup::look::<index::Added>(&(), None, limit));
        lookups.push(Lookup::some(Target::Leases, u32::MAX));
    }
    if step.limit() > 0 {
        lookups.push(Lookup::some(Target::Ready(step.kinds.clone(), step.at_least), step.limit()));
    }
    lookups.push(Lookup::look::<index::ToStop>(&(step.worker,), None, MAX_HELD));
    let held = match &step.held {
        Some(_) => MAX_HELD,
        None => u32::try_from(step.complete.len()).unwrap_or(MAX_HELD) + 1,
    };
    // The list of held tasks is for workers that get none.
    if step.want == 0 || step.held.is_some() || header.is_idle {
        lookups.push(Lookup::look::<index::Leased>(&(step.worker,), None, held));
    }
    if !is_maintenance_due {
        lookups.extend(step.kinds.iter().map(|kind| Lookup::one(Target::Kind(kind.clone()))));
    } else {
        lookups.push(Lookup::some(Target::Kinds, u32::MAX));
        lookups.push(Lookup::look::<index::Deadline>(&(), Some(until), MAINTENANCE_BUDGET));
        lookups.push(Lookup::some(Target::KeysToRebalance, MAINTENANCE_BUDGET));
        let ends = [State::Done, State::Failed, State::Cancelled, State::Purged];
        lookups.extend(ends.map(|end| {
            let until = until - header.keep.of(end);
            Lookup::look::<index::Ended>(&(end,), Some(until), MAINTENANCE_BUDGET)
        }));
    }
    if is_maintenance_due || header.is_idle {
        lookups.push(Lookup::some(Target::Schedules, u32::MAX));
    }
    if header.is_idle {
        lookups.extend([Lookup::first::<index::Scheduled>(), Lookup::first::<index::Deadline>()]);
    }
    lookups
}
