//! The thread that stores: it carries out all commands that wait, in one transaction, and answers them once that is
//! committed.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
};

use interval_queue_contract::{QueueName, StateError, StateErrorKind};
use interval_queue_task_contract::{Command, Reply};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{Shared, TASKS, check_version};
use crate::{
    SqliteStore,
    store::{Fault, Gate},
};

/// About so many tasks are spoken of in one transaction, so that other processes need not wait for long.
const MAX_BATCH_TASKS: usize = 4_000;

/// A reply, or what a panic has left.
type Answer = Result<Result<Reply, StateError>, Box<dyn Any + Send>>;

/// One command, and who waits for it.
pub(super) struct Request {
    pub(super) queue: QueueName,
    pub(super) command: Command,
    /// By whoever carries it out, or gives it up.
    pub(super) claimed: Arc<AtomicBool>,
    pub(super) reply: oneshot::Sender<Answer>,
}

impl Request {
    /// Whether it is to be carried out, from now on by whoever has asked.
    fn claim(&self) -> bool {
        !self.reply.is_closed() && !self.claimed.swap(true, Ordering::Relaxed)
    }

    /// About how many tasks it speaks of.
    fn weight(&self) -> usize {
        match &self.command {
            Command::Add(add) => 1 + add.tasks.len(),
            Command::Step(step) => 1 + step.complete.len() + step.want as usize,
            Command::Change(_) => 100,
            _ => 1,
        }
    }
}

/// Where commands are handed to the thread. It ends once all of these are gone.
#[derive(Clone)]
pub(super) struct Writer(Sender<Request>);

impl Writer {
    /// A thread of its own and not one of the runtime's, which would wait at its end for one that waits for other
    /// processes.
    pub(super) fn start(shared: Arc<Shared>) -> Result<Self, StateError> {
        let (sender, requests) = mpsc::channel();
        let store = shared.store.clone();
        let run = move || Thread { gate: shared.store.gate(), shared, requests }.run();
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
}

impl Thread {
    fn run(mut self) {
        while let Ok(first) = self.requests.recv() {
            self.gate.pass();
            // Those that came during the wait go along.
            let batch = self.batch(first);
            let answers = if batch.is_empty() { Vec::new() } else { self.carry_out(&batch) };
            self.gate.leave();
            for (request, answer) in batch.into_iter().zip(answers) {
                let _ = request.reply.send(answer);
            }
        }
    }

    /// What is carried out now.
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
            // The commit failed, or nobody gets at the database.
            Err(error) if error.is_retryable() => batch.iter().map(|_| Ok(Err(error.clone()))).collect(),
            // One command of them fails in SQLite itself: it is not to take the others with it.
            Err(_) => batch.iter().map(|request| self.carry_out_single(request)).collect(),
        }
    }

    /// In a transaction of its own, which is undone as a whole.
    fn carry_out_single(&self, request: &Request) -> Answer {
        let change = |on: &Connection| {
            check_version(on)?;
            self.shared.carry_out(on, &request.queue, &request.command)
        };
        let changed = catch_unwind(AssertUnwindSafe(|| self.shared.store.change_here(&TASKS, change)))?;
        self.notify(Ok(changed.map(|(reply, notification)| (request, reply, notification))))
    }

    /// One after the other, each of which can be undone alone.
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

    /// Tells those of this process who watch, now that it is stored.
    fn notify(&self, executed: Executed<'_>) -> Answer {
        Ok(executed?.map(|(request, reply, notification)| {
            if let Some(notification) = notification {
                self.shared.watchers.notify_if_new(&request.queue, notification);
            }
            reply
        }))
    }
}

/// A command that is stored, with its reply and its news; or an error; or what a panic has left.
type Executed<'r> = Result<Result<(&'r Request, Reply, Option<i64>), StateError>, Box<dyn Any + Send>>;
