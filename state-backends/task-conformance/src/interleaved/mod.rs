//! Transactions that meet, in every order of their statements: one is held before a statement, for each of its
//! statements, while another one goes on as far as the store lets it. Whatever the order, all must have come out as if
//! one had run after the other.
//!
//! What is ordered here, statements of sessions, is the same for every store; a store brings [`Sessions`] that run one
//! statement at a time. What the right outcome is, the rules say: the same commands, one after the other, on the
//! memory.

mod meetings;
mod scene;
mod schedules;
mod serial;

use std::fmt;

use async_trait::async_trait;
use interval_queue_contract::{Micros, QueueName, StateError, StateErrorKind};
use interval_queue_task_contract::{Add, Added, Command, Completed, Completion, Reply, TaskStore, WorkerId};

use self::schedules::Schedules;
pub use self::{
    meetings::{MEETINGS, MEETINGS_WITHIN, Meeting},
    serial::Prepared,
};

/// So often sessions that all wait for one another may try again.
const PATIENCE: usize = 1_000;

/// Somebody with a transaction.
#[derive(Clone, Debug)]
pub enum Member {
    /// A process that sends the store commands, all at once. A store may carry them out in one transaction.
    Commands(Vec<Command>),
    /// A program that keeps rows of its own in the same database.
    Application(Application),
    /// One whose transaction says something to the store as well. What is refused is rolled back.
    Within(Within),
}

/// What the transaction of an application says to the store.
#[derive(Clone, Debug)]
pub enum Within {
    /// It adds tasks.
    Adds(Add),
    /// It ends the run of a worker.
    Completes(WorkerId, Completion),
}

/// What it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// What became of the tasks.
    Added(Vec<Added>),
    /// The run has ended.
    Completed(Completed),
}

/// What the transaction of an application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// It writes rows and keeps them.
    Commits,
    /// It writes rows and takes them back.
    RollsBack,
    /// It reads rows of its own and of the store, then writes. It may have to begin again.
    ReadsFirst,
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// It has run a statement, and is held before the next one.
    Held,
    /// It could not run its statement: another one has what it needs.
    Waits,
    /// Its transaction has ended.
    Over,
}

/// What came of a session.
#[derive(Debug)]
pub enum End {
    /// What the commands were answered.
    Answered(Vec<Result<Reply, StateError>>),
    /// Whether the application was told that its rows are kept.
    Application(bool),
    /// What the transaction was answered that is committed now, or why the application has rolled it back. None: others
    /// stood in its way, and it has rolled it back.
    Within(Option<Result<Said, StateErrorKind>>),
}

/// One transaction that runs one statement at a time.
#[async_trait]
pub trait Session: Send {
    /// Runs the next statement.
    async fn go_on(&mut self) -> Stands;
    /// What came of it, once it is over.
    async fn end(&mut self) -> End;
}

/// A store whose transactions can be held.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// The store, to prepare a queue and to look at it. Nothing that is done by this handle is held.
    fn store(&self) -> &dyn TaskStore;
    /// Sets its clock.
    fn set_clock(&self, to: Micros);
    /// A session of the client with this number, which has run nothing yet.
    async fn begin(&self, client: usize, queue: &QueueName, member: &Member) -> Box<dyn Session>;
}

/// What the schedules of a meeting had in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explored {
    /// Orders of statements.
    pub schedules: usize,
    /// Statements.
    pub statements: usize,
    /// How often a session had to wait for another one.
    pub waits: usize,
    /// Commands that were refused since others held the store, and changed nothing.
    pub refused: usize,
    /// Transactions of applications that were undone.
    pub undone: usize,
}

/// An order in which the outcome is none of those that there are one after the other.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{meeting}, schedule {schedule:?}: {what}")]
#[non_exhaustive]
pub struct Tangled {
    /// The name of the meeting.
    pub meeting: &'static str,
    /// Which session ran each statement.
    pub schedule: Vec<usize>,
    /// What is wrong.
    pub what: String,
}

/// Which orders are played, and what is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// So many sessions at most are left for another one while they could go on.
    pub changes: usize,
    /// Whether somebody looks at the store each time that a session is left, and not only at the end.
    pub looks_between: bool,
    /// Of the orders that differ in where a session is left, only every so many are played; 1: all.
    pub every: usize,
}

/// Plays a meeting in every order of the statements within these bounds.
///
/// # Errors
///
/// The first order with a wrong outcome.
///
/// # Cancel safety
///
/// Dropping the future leaves sessions and queues where they are.
pub async fn explore(
    sessions: &dyn Sessions,
    meeting: &Meeting,
    bounds: Bounds,
) -> Result<Explored, Tangled> {
    let mut prepared = Prepared::of(meeting).await;
    let mut schedules = Schedules::new(bounds.changes, bounds.every);
    let mut explored = Explored::default();
    while schedules.begin() {
        explored.schedules += 1;
        let mut schedule = Vec::new();
        let mut play = Play { sessions, bounds, prepared: &mut prepared, explored: &mut explored };
        play.play(&mut schedules, &mut schedule).await.map_err(|what| Tangled {
            meeting: meeting.name,
            schedule,
            what,
        })?;
    }
    Ok(explored)
}

/// One schedule.
struct Play<'a> {
    sessions: &'a dyn Sessions,
    bounds: Bounds,
    prepared: &'a mut Prepared,
    explored: &'a mut Explored,
}

impl Play<'_> {
    async fn play(&mut self, schedules: &mut Schedules, schedule: &mut Vec<usize>) -> Result<(), String> {
        let queue = self.prepared.queue(self.sessions).await;
        let mut all = Vec::new();
        for (n, member) in self.prepared.members().iter().enumerate() {
            all.push(self.sessions.begin(n, &queue, member).await);
        }
        let mut stands: Vec<Option<Stands>> = vec![None; all.len()];
        // A store may carry out by itself what had to wait.
        let mut has_waited = vec![false; all.len()];
        let mut answered = Vec::new();
        let (mut current, mut idle) = (None, 0);
        loop {
            let can: Vec<usize> =
                (0..all.len()).filter(|&n| matches!(stands[n], None | Some(Stands::Held))).collect();
            let who = match schedules.choose(current, &can) {
                Some(who) => who,
                // Somebody who waits tries again.
                None => match stands.iter().position(|stands| *stands == Some(Stands::Waits)) {
                    Some(who) => who,
                    None => break,
                },
            };
            // A look while a transaction is held sees nothing of it.
            let is_known = !has_waited.contains(&true);
            if self.bounds.looks_between && is_known && current.is_some_and(|current| current != who) {
                self.look(&queue, &answered).await?;
            }
            schedule.push(who);
            current = Some(who);
            self.explored.statements += 1;
            let now = all[who].go_on().await;
            stands[who] = Some(now);
            has_waited[who] = now == Stands::Waits;
            match now {
                Stands::Held => idle = 0,
                Stands::Waits => {
                    self.explored.waits += 1;
                    idle += 1;
                    if idle > PATIENCE {
                        return Err(format!("nobody goes on: {stands:?}"));
                    }
                    // The next one that waits comes first.
                    if can.is_empty() {
                        stands.iter_mut().for_each(|stands| {
                            stands.take_if(|stands| *stands == Stands::Waits);
                        });
                    }
                }
                Stands::Over => {
                    idle = 0;
                    self.ended(who, all[who].end().await, &mut answered);
                    // What it held is free.
                    stands.iter_mut().for_each(|stands| {
                        stands.take_if(|stands| *stands == Stands::Waits);
                    });
                }
            }
        }
        self.look(&queue, &answered).await
    }

    /// Takes down what came of a session, if it changed what the store has.
    fn ended(&mut self, who: usize, end: End, answered: &mut Vec<(usize, Option<String>)>) {
        match end {
            End::Answered(replies) if replies.iter().all(is_refused) => self.explored.refused += 1,
            End::Answered(replies) => answered.push((who, Some(serial::described(&replies)))),
            End::Application(is_kept) => self.explored.undone += usize::from(!is_kept),
            End::Within(None) => self.explored.undone += 1,
            End::Within(Some(said)) => answered.push((who, Some(serial::told_within(&said)))),
        }
    }

    async fn look(&mut self, queue: &QueueName, answered: &[(usize, Option<String>)]) -> Result<(), String> {
        self.prepared.check(self.sessions.store(), queue, answered).await
    }
}

/// Whether nothing was done, since others held the store too long.
fn is_refused(reply: &Result<Reply, StateError>) -> bool {
    matches!(reply, Err(error) if error.kind() == StateErrorKind::Unreachable)
}

impl fmt::Debug for Play<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Play").field("prepared", &self.prepared).finish_non_exhaustive()
    }
}
