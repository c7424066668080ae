//! The writer thread: runs all waiting commands in one transaction, and sends their replies after
//! the commit.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::Duration,
};

use interval_queue_contract::{QueueName, StateError, StateErrorKind};
use interval_queue_task_contract::{Command, Reply};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{Shared, TASKS, check_version};
use crate::{
    SqliteStore,
    store::{Fault, Gate, gate},
};

/// Approximate number, which limits the wait of other processes.
const MAX_BATCH_TASKS: usize = 4_000;

/// Time in which a process that has passed the gate may begin transactions.
const MAX_HOLD: Duration = Duration::from_millis(2);

/// Time for which a held gate waits for a command.
const MAX_LINGER: Duration = Duration::from_micros(80);

/// A reply, or the payload of a panic.
type Answer = Result<Result<Reply, StateError>, Box<dyn Any + Send>>;

pub(super) struct Request {
    pub(super) queue: QueueName,
    pub(super) command: Command,
    /// Set by the thread that starts the command, or by the caller that gives it up.
    pub(super) claimed: Arc<AtomicBool>,
    pub(super) reply: oneshot::Sender<Answer>,
}

impl Request {
    /// Claims the command for the thread.
    fn claim(&self) -> bool {
        !self.reply.is_closed() && !self.claimed.swap(true, Ordering::Relaxed)
    }

    /// Approximate number of tasks.
    fn weight(&self) -> usize {
        match &self.command {
            Command::Add(add) => 1 + add.tasks.len(),
            Command::Step(step) => 1 + step.complete.len() + step.limit() as usize,
            Command::Change(_) => 100,
            _ => 1,
        }
    }
}

/// The thread ends once all clones are dropped.
#[derive(Clone)]
pub(super) struct Writer(Sender<Request>);

impl Writer {
    /// Not a thread of the runtime, which would wait at its end for a thread that waits for other
    /// processes.
    pub(super) fn start(shared: Arc<Shared>) -> Result<Self, StateError> {
        let (sender, requests) = mpsc::channel();
        let store = shared.store.clone();
        let run = move || Thread { gate: shared.store.gate(), shared, requests, is_quick: false }.run();
        let started = thread::Builder::new().name("interval-queue-tasks".into()).spawn(run);
        started.map_err(|error| gone(&store).with_source(error))?;
        Ok(Self(sender))
    }

    pub(super) fn send(&self, request: Request) -> Result<(), StateError> {
        self.0.send(request).map_err(|_| StateError::new(StateErrorKind::Unreachable, THREAD_GONE))
    }
}

const THREAD_GONE: &str = "the thread that stores tasks is gone: open the database again";

pub(super) fn gone(store: &SqliteStore) -> StateError {
    StateError::new(StateErrorKind::Unreachable, format!("{}: {THREAD_GONE}", store.path().display()))
}

struct Thread {
    shared: Arc<Shared>,
    gate: Gate,
    requests: Receiver<Request>,
    /// The last command came within [`MAX_LINGER`] after a reply.
    is_quick: bool,
}

impl Thread {
    fn run(mut self) {
        while let Some(first) = self.next() {
            if self.gate.held_for().is_none() {
                self.gate.pass();
            }
            // Includes the commands that came during the wait.
            let batch = self.batch(first);
            let answers = if batch.is_empty() { Vec::new() } else { self.carry_out(&batch) };
            if !self.is_quick || self.gate.held_for().is_some_and(|held| held >= MAX_HOLD) {
                self.gate.leave();
            }
            for (request, answer) in batch.into_iter().zip(answers) {
                let _ = request.reply.send(answer);
            }
        }
    }

    /// The gate is kept for a command that comes immediately: another process would find its cached
    /// pages outdated, and so would this one afterwards.
    fn next(&mut self) -> Option<Request> {
        let answered = gate::now();
        let soon = self.gate.held_for().and_then(|_| self.requests.recv_timeout(MAX_LINGER).ok());
        let next = soon.or_else(|| {
            self.gate.leave();
            self.requests.recv().ok()
        });
        self.is_quick = answered.elapsed() < MAX_LINGER;
        next
    }

    /// Takes up to [`MAX_BATCH_TASKS`].
    fn batch(&self, first: Request) -> Vec<Request> {
        let mut weight = 0;
        let mut batch = Vec::new();
        let mut next = Some(first);
        while let Some(request) = next {
            if request.claim() {
                weight += request.weight();
                batch.push(request);
            }
            next = if weight < MAX_BATCH_TASKS { self.requests.try_recv().ok() } else { None };
        }
        batch
    }

    fn carry_out(&self, batch: &[Request]) -> Vec<Answer> {
        let answers = match batch {
            [request] => return vec![self.carry_out_single(request)],
            _ => self.shared.store.change_here(&TASKS, |on| self.carry_out_batch(on, batch)),
        };
        match answers {
            Ok(answers) => answers.into_iter().map(|answer| self.notify(answer)).collect(),
            // The commit failed, or the database stayed locked.
            Err(error) if error.is_retryable() => batch.iter().map(|_| Ok(Err(error.clone()))).collect(),
            // A command fails in SQLite itself, and must not affect the others.
            Err(_) => batch.iter().map(|request| self.carry_out_single(request)).collect(),
        }
    }

    fn carry_out_single(&self, request: &Request) -> Answer {
        let change = |on: &Connection| {
            check_version(on)?;
            self.shared.carry_out(on, &request.queue, &request.command)
        };
        let changed = catch_unwind(AssertUnwindSafe(|| self.shared.store.change_here(&TASKS, change)))?;
        self.notify(Ok(changed.map(|(reply, notification)| (request, reply, notification))))
    }

    /// Each command has a savepoint.
    fn carry_out_batch<'r>(&self, on: &Connection, batch: &'r [Request]) -> Result<Vec<Executed<'r>>, Fault> {
        check_version(on)?;
        let run = |sql| on.prepare_cached(sql)?.execute([]);
        let carry_out_one = |request: &'r Request| {
            run("SAVEPOINT command")?;
            let work = || self.shared.carry_out(on, &request.queue, &request.command);
            let done = match catch_unwind(AssertUnwindSafe(work)) {
                Ok(Ok((reply, notification))) => Ok(Ok((request, reply, notification))),
                Ok(Err(Fault::Refused(error))) => Ok(Err(error)),
                Ok(Err(fault)) => return Err(fault),
                Err(panic) => Err(panic),
            };
            if !matches!(done, Ok(Ok(_))) {
                run("ROLLBACK TO command")?;
            }
            run("RELEASE command")?;
            Ok(done)
        };
        batch.iter().map(carry_out_one).collect()
    }

    /// Required after the commit.
    fn notify(&self, executed: Executed<'_>) -> Answer {
        Ok(executed?.map(|(request, reply, notification)| {
            if let (Command::Step(step), Reply::Stepped(stepped)) = (&request.command, &reply) {
                self.shared.watchers.stepped(&request.queue, step, stepped);
            }
            if let Some(notification) = notification {
                self.shared.watchers.notify_if_new(&request.queue, notification);
            }
            reply
        }))
    }
}

/// A stored command with its reply and the number of its notification, or an error, or the payload
/// of a panic.
type Executed<'r> = Result<Result<(&'r Request, Reply, Option<i64>), StateError>, Box<dyn Any + Send>>;
