//! Every rule of stored tasks, as pure functions over the rows that a store finds: a store *finds* rows, the rules
//! *decide*, the store *writes*.
//!
//! | file | rule |
//! |---|---|
//! | `add.rs` | what an `add` inserts, which ids are known, who has a unique name, what an edit makes of a task |
//! | `gates.rs` | edges, time and key: where a task goes, and who gets a place of a key |
//! | `kinds.rs` | which kinds may hold keys |
//! | `ending.rs` | what becomes of a run that has ended, and of what it held |
//! | `within.rs` | the end of a run as part of a transaction of the application |
//! | `edges.rs` | what those downstream are told |
//! | `step.rs` | one step of a worker: what it says, and what it is given |
//! | `chores.rs` | the bounded share of the housekeeping that each step does |
//! | `admission.rs` | how many tasks a step lets through their gates |
//! | `clock.rs` | the clock of leases |
//! | `import.rs` | what becomes of tasks that come from another place |
//! | `follow.rs` | what is told to those who follow |
//! | `change.rs`, `verbs.rs`, `links.rs`, `fire.rs` | what operators and schedules do |
//! | `read.rs` | looks |

mod add;
mod admission;
mod change;
mod chores;
mod clock;
mod edges;
mod ending;
mod fire;
mod follow;
mod gates;
mod import;
mod kinds;
mod links;
mod read;
mod step;
mod verbs;
mod within;

pub use within::End;

use std::{borrow::Cow, collections::BTreeSet};

use interval_queue_contract::{Micros, StateError, StateErrorKind};

use crate::{
    Command, Completed, Completion, Counted, Json, NewTask, Queue, Reply, Rows, Settings, Span, State, Task,
    TaskId, Took, WorkerId,
};

/// Carries out one command on the rows of a queue, at `now` on the store's clock.
///
/// # Errors
///
/// The command cannot be used, or the store failed. The store undoes what was written.
pub fn apply<R: Rows>(rows: &mut R, now: Micros, command: &Command) -> Result<Reply, R::Error> {
    apply_in_shares(rows, now, chores::SHARE, command)
}

/// The same with so much of the housekeeping at once: tests take little, so that a few tasks are more than a step does.
#[doc(hidden)]
#[allow(clippy::missing_errors_doc, reason = "as above")]
pub fn apply_in_shares<R: Rows>(
    rows: &mut R,
    now: Micros,
    share: u32,
    command: &Command,
) -> Result<Reply, R::Error> {
    command.check().map_err(StateError::from)?;
    let stored = rows.queue()?;
    if stored.is_none() && !command.creates_queue() {
        return Err(no_queue().into());
    }
    let mut work = Work::begin(rows, now, share, stored);
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

/// Ends a run as part of a transaction of the application, at `now` on the store's clock, so that its effects and its
/// end are stored together or not at all: with [`Done`](crate::Outcome::Done) or [`Failed`](crate::Outcome::Failed).
///
/// The transaction may stay open for long. So nothing but the row of the task, its result and what is counted is
/// written, and no gate is decided that another task stands in: a key that the task holds stays held. What follows from
/// the end is the housekeeping of the next step.
///
/// # Errors
///
/// [`Superseded`](StateErrorKind::Superseded) if the token is not in force, or the run was asked to stop because its
/// task was cancelled: the application is to roll back. Another outcome or a result that is too large is [`Invalid`](StateErrorKind::Invalid). Or the store failed. The store undoes
/// what was written.
pub fn complete_within<R: Rows>(
    rows: &mut R,
    now: Micros,
    worker: WorkerId,
    completion: &Completion,
) -> Result<Completed, R::Error> {
    let Some(stored) = rows.queue()? else { return Err(within::not_in_force(worker, completion).into()) };
    let mut work = Work::begin(rows, now, chores::SHARE, Some(stored));
    let completed = work.complete_within(worker, completion)?;
    work.finish()?;
    Ok(completed)
}

/// A task that waits becomes this one, in its place and under its id, as if it had been added so: a store whose tasks
/// people edit says by this what they wrote. Upstreams stay as they are. False: the task is so already, runs, has ended
/// or is not there, and nothing is changed.
///
/// # Errors
///
/// It cannot be such a task, or the store failed. The store undoes what was written.
#[doc(hidden)]
pub fn edit<R: Rows>(rows: &mut R, now: Micros, new: &NewTask) -> Result<bool, R::Error> {
    new.check().map_err(StateError::from)?;
    let Some(stored) = rows.queue()? else { return Ok(false) };
    let mut work = Work::begin(rows, now, chores::SHARE, Some(stored));
    work.tell_time()?;
    let is_edited = work.edit(new)?;
    work.finish()?;
    Ok(is_edited)
}

/// The reply to a command on a queue of which nothing is stored. A store without tables answers every read so.
pub fn no_queue() -> StateError {
    let text = "there is no such queue of tasks: the first task, worker or setting creates it";
    StateError::new(StateErrorKind::NotFound, text)
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

/// One command under way.
struct Work<'a, R> {
    rows: &'a mut R,
    /// The store's clock.
    now: Micros,
    /// How much of the housekeeping a step does.
    share: u32,
    /// The clock of leases, see `clock.rs`.
    lease_clock: Micros,
    /// Whether nobody was heard of for so long that the time may not count in full, see `clock.rs`.
    was_silent: bool,
    queue: Queue,
    queue_changed: bool,
    is_new: bool,
    /// Whether this step also looks at what is seldom to be done.
    sweeps: bool,
    /// Whether this is the first step of an hour.
    hour_passed: bool,
    /// What became ready and still is.
    readied: BTreeSet<TaskId>,
    /// How many more are leased than before.
    more_leased: i64,
    /// Whether something has ended since housekeeping last looked, and those downstream wait to be told.
    unnotified: bool,
    /// Whether something has to be heard.
    notifies: bool,
}

impl<'a, R: Rows> Work<'a, R> {
    fn begin(rows: &'a mut R, now: Micros, share: u32, stored: Option<Queue>) -> Self {
        let is_new = stored.is_none();
        let queue = stored.unwrap_or_else(|| new_queue(now));
        Self {
            rows,
            now,
            share,
            lease_clock: queue.lease_clock,
            was_silent: false,
            queue,
            queue_changed: is_new,
            is_new,
            sweeps: false,
            hour_passed: false,
            readied: BTreeSet::new(),
            more_leased: 0,
            unnotified: false,
            notifies: false,
        }
    }

    /// Writes what a command leaves of the queue, and has it heard.
    fn finish(&mut self) -> Result<(), R::Error> {
        if self.queue_changed {
            self.rows.put_queue(&self.queue)?;
        }
        if self.notifies || !self.readied.is_empty() || self.has_made_room()? {
            self.rows.notify()?;
        }
        Ok(())
    }

    /// Writes a new task, and counts it.
    fn insert(&mut self, task: &Task, payload: &Json) -> Result<(), R::Error> {
        self.rows.count(&task.kind, Counted::Now(task.state), 1)?;
        self.note(None, task)?;
        self.rows.insert(task, payload)
    }

    /// Writes a task of which `before` is stored, and counts it.
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

    /// Counts how long something took that ends now.
    fn took(&mut self, x: &Task, span: Span, since: Micros) -> Result<(), R::Error> {
        let parts = Took::of(span, self.now - since, self.now);
        parts
            .into_iter()
            .filter(|&(_, more)| more > 0)
            .try_for_each(|(took, more)| self.rows.took(&x.kind, took, more))
    }

    /// The same of a run that its worker has ended.
    fn has_run(&mut self, x: &Task) -> Result<(), R::Error> {
        self.took(x, Span::Run, x.leased.unwrap_or(self.now))
    }

    /// Whether there were as many running as may, and there are less now.
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
