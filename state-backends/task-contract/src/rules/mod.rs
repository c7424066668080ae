//! Every rule of stored tasks, as pure functions: a store finds rows, the rules decide, the store
//! writes.
//!
//! | file | rule |
//! |---|---|
//! | `add.rs` | inserts, repeated ids, unique names, edits of waiting tasks |
//! | `gates.rs` | edges, time and key: where a task goes, which tasks hold a key |
//! | `kinds.rs` | which kinds may hold keys |
//! | `ending.rs` | the end of a run, and the release of what its task held |
//! | `within.rs` | the end of a run within a transaction of the application |
//! | `edges.rs` | notifications of downstreams |
//! | `step.rs` | one step of a worker |
//! | `maintenance.rs` | maintenance within the budget of a step |
//! | `admission.rs` | how many tasks a step lets through their gates |
//! | `clock.rs` | the lease clock, and the incarnation of tokens |
//! | `import.rs` | tasks from another queue |
//! | `follow.rs` | events for followers |
//! | `change.rs`, `verbs.rs`, `links.rs`, `fire.rs` | changes by operators and schedules |
//! | `select.rs` | pages, numbers and other selections of tasks |
//! | `read.rs` | other reads |

mod add;
mod admission;
mod change;
mod clock;
mod edges;
mod ending;
mod fire;
mod follow;
mod gates;
mod import;
mod kinds;
mod links;
mod maintenance;
mod read;
mod run_log;
mod select;
mod step;
mod verbs;
mod within;

#[doc(hidden)]
pub use within::End;
/// Limits of lookups, for stores that read ahead.
#[doc(hidden)]
pub use {
    admission::BUDGET_PART, clock::MAINTENANCE_INTERVAL, maintenance::MAINTENANCE_BUDGET,
    read::MAX_LISTED_ROWS,
};

use std::{borrow::Cow, collections::BTreeSet};

use interval_queue_contract::{Micros, StateError};

use crate::{
    Command, Completed, Completion, Counted, Json, Kind, NewTask, Occurrence, Queue, Refusal, Reply, Rows,
    Settings, Span, State, Task, TaskId, Took, WorkerId,
};

/// Applies one command to the rows of a queue, at `now` on the store's clock.
///
/// # Errors
///
/// The command is rejected, or the store failed. The store must undo what was written.
pub fn apply<R: Rows>(rows: &mut R, now: Micros, command: &Command) -> Result<Reply, R::Error> {
    apply_with_budget(rows, now, maintenance::MAINTENANCE_BUDGET, command)
}

/// As [`apply`], with a maintenance budget: a small one in tests, so that few tasks exceed it.
#[doc(hidden)]
#[allow(clippy::missing_errors_doc, reason = "as above")]
pub fn apply_with_budget<R: Rows>(
    rows: &mut R,
    now: Micros,
    budget: u32,
    command: &Command,
) -> Result<Reply, R::Error> {
    command.check().map_err(StateError::from)?;
    let stored = rows.queue()?;
    if stored.is_none() && !command.creates_queue() {
        return Err(no_queue().into());
    }
    let mut work = Work::begin(rows, now, budget, stored);
    let reply = match command {
        Command::Add(add) => work.add(add),
        Command::Step(step) => work.step(step),
        Command::Change(change) => work.change(change),
        Command::Fire(fire) => work.fire(fire),
        Command::Import(tasks) => work.import(tasks),
        Command::Follow(follow) => work.follow(follow).map(Reply::Followed),
        Command::Read(read) => return work.read(read),
    }?;
    work.finish()?;
    Ok(reply)
}

/// Ends a run within a transaction of the application, at `now` on the store's clock: with
/// [`Done`](crate::Outcome::Done) or [`Failed`](crate::Outcome::Failed).
///
/// The transaction may stay open for long. So only the task's row, its result and counts are
/// written, no gate of another task is decided, and the task keeps its key. The next step's
/// maintenance does the rest.
///
/// # Errors
///
/// [`Superseded`][superseded]: the token is not in force, or the run was asked to stop because its
/// task was cancelled; the application must roll back. [`Invalid`][invalid]: another outcome, or a
/// result that is too large. Otherwise the store failed. The store must undo what was written.
///
/// [superseded]: interval_queue_contract::StateErrorKind::Superseded
/// [invalid]: interval_queue_contract::StateErrorKind::Invalid
pub fn complete_within<R: Rows>(
    rows: &mut R,
    now: Micros,
    worker: WorkerId,
    completion: &Completion,
) -> Result<Completed, R::Error> {
    let Some(stored) = rows.queue()? else { return Err(within::not_in_force(completion).into()) };
    let mut work = Work::begin(rows, now, maintenance::MAINTENANCE_BUDGET, Some(stored));
    let completed = work.complete_within(worker, completion)?;
    work.finish()?;
    Ok(completed)
}

/// Gives a waiting task the content of `new`, as if added so, for stores whose tasks people edit;
/// id, time of adding and upstreams stay. Returns false, and changes nothing, if at most the
/// payload differs, or if the task runs, has ended or is not stored.
///
/// # Errors
///
/// The task cannot become `new`, or the store failed. The store must undo what was written.
#[doc(hidden)]
pub fn edit<R: Rows>(rows: &mut R, now: Micros, new: &NewTask) -> Result<bool, R::Error> {
    new.check().map_err(StateError::from)?;
    let Some(stored) = rows.queue()? else { return Ok(false) };
    let mut work = Work::begin(rows, now, maintenance::MAINTENANCE_BUDGET, Some(stored));
    work.read_lease_clock()?;
    let is_edited = work.edit(new)?;
    work.finish()?;
    Ok(is_edited)
}

/// The error of a command on a missing queue; of a store without tables, for every read.
pub fn no_queue() -> StateError {
    Refusal::NoQueue.into()
}

fn refused<E: From<StateError>>(refusal: Refusal) -> E {
    StateError::from(refusal).into()
}

fn new_queue(now: Micros) -> Queue {
    Queue {
        settings: Settings::default(),
        paused: false,
        paused_at: None,
        incarnation: now,
        lease_clock: Micros::ZERO,
        seen: now,
        latest: now,
        maintenance_due: false,
        rebalance_after: None,
        followed: None,
    }
}

struct Work<'a, R> {
    rows: &'a mut R,
    now: Micros,
    /// Rows of maintenance per step.
    budget: u32,
    /// See `clock.rs`.
    lease_clock: Micros,
    /// Whether the silence before this command is too long to count in full, see `clock.rs`.
    was_silent: bool,
    queue: Queue,
    queue_changed: bool,
    is_new: bool,
    /// Other steps only notify downstreams.
    maintains: bool,
    hour_passed: bool,
    /// Tasks that became ready and still are.
    readied: BTreeSet<TaskId>,
    more_leased: i64,
    /// Whether a task with downstreams to notify has ended since maintenance.
    unnotified: bool,
    /// Whether to notify watchers of the queue.
    notifies: bool,
}

impl<'a, R: Rows> Work<'a, R> {
    fn begin(rows: &'a mut R, now: Micros, budget: u32, stored: Option<Queue>) -> Self {
        let is_new = stored.is_none();
        let queue = stored.unwrap_or_else(|| new_queue(now));
        Self {
            rows,
            now,
            budget,
            lease_clock: queue.lease_clock,
            was_silent: false,
            queue,
            queue_changed: is_new,
            is_new,
            maintains: false,
            hour_passed: false,
            readied: BTreeSet::new(),
            more_leased: 0,
            unnotified: false,
            notifies: false,
        }
    }

    fn finish(&mut self) -> Result<(), R::Error> {
        if self.queue_changed {
            self.rows.put_queue(&self.queue)?;
        }
        if self.notifies || !self.readied.is_empty() || self.has_made_room()? {
            self.rows.notify()?;
        }
        Ok(())
    }

    fn insert(&mut self, task: &Task, payload: &Json) -> Result<(), R::Error> {
        self.rows.count(&task.kind, Counted::Now(task.state), 1)?;
        self.note(None, task)?;
        self.rows.insert(task, payload)
    }

    fn save(&mut self, before: &Task, after: &Task) -> Result<(), R::Error> {
        let mut after = Cow::Borrowed(after);
        if after.state == State::Ready && matches!(before.state, State::Waiting | State::Blocked) {
            after.to_mut().admitted = Some(self.now);
        }
        let after = &*after;
        if (before.state, &before.kind) != (after.state, &after.kind) {
            self.rows.count(&before.kind, Counted::Now(before.state), -1)?;
            self.rows.count(&after.kind, Counted::Now(after.state), 1)?;
        }
        match after.state {
            State::Ready => _ = self.readied.insert(after.id),
            _ => _ = self.readied.remove(&after.id),
        }
        self.more_leased +=
            i64::from(after.state == State::Leased) - i64::from(before.state == State::Leased);
        self.note(Some(before), after)?;
        self.rows.put(before, after)
    }

    fn took(&mut self, x: &Task, span: Span, since: Micros) -> Result<(), R::Error> {
        let parts = Took::of(span, self.now - since, self.now);
        parts
            .into_iter()
            .filter(|&(_, more)| more > 0)
            .try_for_each(|(took, more)| self.rows.took(&x.kind, took, more))
    }

    fn count_occurrence(&mut self, kind: &Kind, occurrence: Occurrence) -> Result<(), R::Error> {
        self.rows.took(kind, Took::occurrence(occurrence, self.now), 1)
    }

    fn count_added(&mut self, kind: &Kind) -> Result<(), R::Error> {
        self.rows.count(kind, Counted::EverAdded, 1)?;
        self.count_occurrence(kind, Occurrence::Added)
    }

    fn count_end(&mut self, kind: &Kind, state: State) -> Result<(), R::Error> {
        let (ever, occurrence) = match state {
            State::Done => (Counted::EverDone, Occurrence::Done),
            State::Failed => (Counted::EverFailed, Occurrence::Failed),
            State::Cancelled => (Counted::EverCancelled, Occurrence::Cancelled),
            _ => return Ok(()),
        };
        self.rows.count(kind, ever, 1)?;
        self.count_occurrence(kind, occurrence)
    }

    fn has_run(&mut self, x: &Task) -> Result<(), R::Error> {
        self.took(x, Span::Run, x.leased.unwrap_or(self.now))
    }

    /// Whether `max_running` was reached before this command, and no longer is.
    fn has_made_room(&mut self) -> Result<bool, R::Error> {
        match self.queue.settings.max_running {
            Some(limit) if self.more_leased < 0 => {
                Ok(self.rows.leased()? + self.more_leased.unsigned_abs() >= limit.into())
            }
            _ => Ok(false),
        }
    }

    fn queue(&mut self) -> &mut Queue {
        self.queue_changed = true;
        &mut self.queue
    }
}
