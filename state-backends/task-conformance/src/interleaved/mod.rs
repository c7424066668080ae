//! Concurrent transactions in every order of their statements. Before each statement one session is
//! held while others proceed as far as the store allows. The result must equal that of some serial
//! order, which the memory computes. A store implements [`Sessions`].

mod interleaved_schedules;
mod interleavings;
mod preparation;
mod serial;

use std::fmt;

use async_trait::async_trait;
use interval_queue_contract::{Micros, QueueName, StateError, StateErrorKind};
use interval_queue_task_contract::{Add, Added, Command, Completed, Completion, Reply, TaskStore, WorkerId};

use self::interleaved_schedules::Schedules;
pub use self::{
    interleavings::{INTERLEAVINGS, INTERLEAVINGS_WITHIN, Interleaving},
    serial::Prepared,
};

/// Maximum consecutive attempts while all sessions wait for one another.
const MAX_IDLE_ATTEMPTS: usize = 1_000;

/// A participant with a transaction.
#[derive(Clone, Debug)]
pub enum Member {
    /// A process that sends commands concurrently. A store may run them in one transaction.
    Commands(Vec<Command>),
    /// A program with rows of its own in the same database.
    Application(Application),
    /// An application whose transaction also writes tasks. A rejection rolls it back.
    Within(Within),
}

/// The write of tasks in an application's transaction.
#[derive(Clone, Debug)]
pub enum Within {
    /// Adds tasks.
    Adds(Add),
    /// Completes a worker's run.
    Completes(WorkerId, Completion),
}

/// The result of a [`Within`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WithinReply {
    /// The added tasks.
    Added(Vec<Added>),
    /// The completed run.
    Completed(Completed),
}

/// The transaction of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// Writes rows and commits.
    Commits,
    /// Writes rows and rolls back.
    RollsBack,
    /// Reads its own rows and the store's, then writes. May have to start over.
    ReadsFirst,
}

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// Ran a statement and is held before the next.
    Held,
    /// Could not run its statement: another session holds a lock.
    Waits,
    /// Its transaction has ended.
    Over,
}

/// The result of a session.
#[derive(Debug)]
pub enum End {
    /// The replies to the commands.
    Answered(Vec<Result<Reply, StateError>>),
    /// Whether the application's commit was confirmed.
    Application(bool),
    /// The result of a committed transaction, or the error that rolled it back. `None`: rolled back
    /// by a conflict.
    Within(Option<Result<WithinReply, StateErrorKind>>),
}

/// A transaction that runs one statement at a time.
#[async_trait]
pub trait Session: Send {
    /// Runs the next statement.
    async fn go_on(&mut self) -> SessionState;
    /// The result, once the session is over.
    async fn end(&mut self) -> End;
}

/// A store whose transactions can be held.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// The store, to prepare and read a queue without being held.
    fn store(&self) -> &dyn TaskStore;
    /// Sets the store's clock.
    fn set_clock(&self, to: Micros);
    /// A new session of client `client`.
    async fn begin(&self, client: usize, queue: &QueueName, member: &Member) -> Box<dyn Session>;
}

/// Counts over the schedules of an interleaving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explored {
    /// Orders of statements.
    pub schedules: usize,
    /// Statements.
    pub statements: usize,
    /// Attempts in which a session had to wait for another.
    pub waits: usize,
    /// Commands rejected without effect, because other sessions held the store.
    pub refused: usize,
    /// Transactions of applications that were rolled back.
    pub undone: usize,
}

/// An order whose result equals no serial order.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{interleaving}, schedule {schedule:?}: {what}")]
#[non_exhaustive]
pub struct Unserializable {
    /// The name of the interleaving.
    pub interleaving: &'static str,
    /// The session of each statement.
    pub schedule: Vec<usize>,
    /// The difference.
    pub what: String,
}

/// The orders to run, and when to read.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Maximum number of switches from a session that could proceed.
    pub changes: usize,
    /// Whether the store is also read at each switch, not only at the end.
    pub reads_between: bool,
    /// Runs every n-th order of those that differ in the last switch; 1: all.
    pub every: usize,
}

/// Runs an interleaving in every order of statements within these bounds.
///
/// # Errors
///
/// The first order with a wrong result.
///
/// # Cancel safety
///
/// A dropped future leaves sessions and queues as they are.
pub async fn explore(
    sessions: &dyn Sessions,
    interleaving: &Interleaving,
    bounds: Bounds,
) -> Result<Explored, Unserializable> {
    let mut prepared = Prepared::of(interleaving).await;
    let mut schedules = Schedules::new(bounds.changes, bounds.every);
    let mut explored = Explored::default();
    while schedules.begin() {
        explored.schedules += 1;
        let mut schedule = Vec::new();
        let mut run = ScheduleRun { sessions, bounds, prepared: &mut prepared, explored: &mut explored };
        run.run(&mut schedules, &mut schedule).await.map_err(|what| Unserializable {
            interleaving: interleaving.name,
            schedule,
            what,
        })?;
    }
    Ok(explored)
}

struct ScheduleRun<'a> {
    sessions: &'a dyn Sessions,
    bounds: Bounds,
    prepared: &'a mut Prepared,
    explored: &'a mut Explored,
}

impl ScheduleRun<'_> {
    async fn run(&mut self, schedules: &mut Schedules, schedule: &mut Vec<usize>) -> Result<(), String> {
        let queue = self.prepared.queue(self.sessions).await;
        let mut all = Vec::new();
        for (n, member) in self.prepared.members().iter().enumerate() {
            all.push(self.sessions.begin(n, &queue, member).await);
        }
        let mut states: Vec<Option<SessionState>> = vec![None; all.len()];
        // A store may run a waiting statement by itself: its effects are unknown.
        let mut has_waited = vec![false; all.len()];
        let mut answered = Vec::new();
        let (mut current, mut idle) = (None, 0);
        loop {
            let can: Vec<usize> =
                (0..all.len()).filter(|&n| matches!(states[n], None | Some(SessionState::Held))).collect();
            let session = match schedules.choose(current, &can) {
                Some(session) => session,
                // The first waiting session retries.
                None => match states.iter().position(|state| *state == Some(SessionState::Waits)) {
                    Some(session) => session,
                    None => break,
                },
            };
            // A read must see nothing of a held transaction.
            let is_determined = !has_waited.contains(&true);
            if self.bounds.reads_between && is_determined && current.is_some_and(|current| current != session)
            {
                self.check(&queue, &answered).await?;
            }
            schedule.push(session);
            current = Some(session);
            self.explored.statements += 1;
            let now = all[session].go_on().await;
            states[session] = Some(now);
            has_waited[session] = now == SessionState::Waits;
            match now {
                SessionState::Held => idle = 0,
                SessionState::Waits => {
                    self.explored.waits += 1;
                    idle += 1;
                    if idle > MAX_IDLE_ATTEMPTS {
                        return Err(format!("no session can go on: {states:?}"));
                    }
                    // All waiting sessions become runnable, so that another one is tried next.
                    if can.is_empty() {
                        states.iter_mut().for_each(|state| {
                            state.take_if(|state| *state == SessionState::Waits);
                        });
                    }
                }
                SessionState::Over => {
                    idle = 0;
                    self.ended(session, all[session].end().await, &mut answered);
                    // The session's locks are free.
                    states.iter_mut().for_each(|state| {
                        state.take_if(|state| *state == SessionState::Waits);
                    });
                }
            }
        }
        self.check(&queue, &answered).await
    }

    fn ended(&mut self, session: usize, end: End, answered: &mut Vec<(usize, Option<String>)>) {
        match end {
            End::Answered(replies) if replies.iter().all(is_refused) => self.explored.refused += 1,
            End::Answered(replies) => answered.push((session, Some(serial::described(&replies)))),
            End::Application(is_kept) => self.explored.undone += usize::from(!is_kept),
            End::Within(None) => self.explored.undone += 1,
            End::Within(Some(reply)) => answered.push((session, Some(serial::described_within(&reply)))),
        }
    }

    async fn check(&mut self, queue: &QueueName, answered: &[(usize, Option<String>)]) -> Result<(), String> {
        self.prepared.check(self.sessions.store(), queue, answered).await
    }
}

/// Whether the command failed because other sessions held the store too long.
fn is_refused(reply: &Result<Reply, StateError>) -> bool {
    matches!(reply, Err(error) if error.kind() == StateErrorKind::Unreachable)
}

impl fmt::Debug for ScheduleRun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScheduleRun").field("prepared", &self.prepared).finish_non_exhaustive()
    }
}
