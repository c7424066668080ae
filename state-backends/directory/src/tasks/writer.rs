//! The thread that takes the lock, carries out all waiting commands at once, and answers them when
//! they are stored.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
};

use interval_queue_contract::{QueueName, StateError, StateErrorKind};
use interval_queue_json_file::parts::LockFile;
use interval_queue_sqlite::index::Gate;
use interval_queue_task_contract::{Command, rules};
use tokio::sync::oneshot;

use super::session::{Answer, Session, TaskClock};
use crate::store::Location;

/// Approximate number of tasks. Bounds the wait of other processes.
const MAX_BATCH_WEIGHT: usize = 4_000;
const BYTES_PER_WEIGHT: usize = 4_096;

pub(super) struct Request {
    pub(super) queue: QueueName,
    pub(super) command: Command,
    /// Set by the thread that carries it out, or by the caller that gives up.
    pub(super) claimed: Arc<AtomicBool>,
    pub(super) reply: oneshot::Sender<Answer>,
}

impl Request {
    /// `false`: the caller has given up.
    fn claim(&self) -> bool {
        !self.reply.is_closed() && !self.claimed.swap(true, Ordering::Relaxed)
    }

    /// Approximate number of tasks.
    fn weight(&self) -> usize {
        match &self.command {
            Command::Add(add) => {
                1 + add
                    .tasks
                    .iter()
                    .map(|task| 1 + task.payload.as_str().len() / BYTES_PER_WEIGHT)
                    .sum::<usize>()
            }
            Command::Step(step) => 1 + step.complete.len() + step.limit() as usize,
            Command::Change(_) => 100,
            _ => 1,
        }
    }
}

/// The thread ends when all senders are dropped.
#[derive(Clone)]
pub(super) struct Writer(Sender<Request>);

impl Writer {
    /// Not a thread of the runtime, which would wait at shutdown for a blocking thread that waits
    /// for other processes.
    pub(super) fn start(location: Arc<Location>, clock: Option<TaskClock>) -> Result<Self, StateError> {
        let (sender, requests) = mpsc::channel();
        let failed = location.clone();
        let run = move || {
            let (lock, gate) = (location.lock(), Gate::beside(&location.path().join("lock")));
            Thread { session: Session::new(location.clone(), clock), location, lock, gate, requests }.run();
        };
        let started = thread::Builder::new().name("interval-queue-tasks".into()).spawn(run);
        started.map_err(|error| gone(&failed).with_source(error))?;
        Ok(Self(sender))
    }

    pub(super) fn send(&self, request: Request) -> Result<(), StateError> {
        self.0.send(request).map_err(|_| StateError::new(StateErrorKind::Unreachable, GONE))
    }
}

const GONE: &str = "the thread that stores tasks is gone: open the directory again";

pub(super) fn gone(location: &Location) -> StateError {
    location.error(StateErrorKind::Unreachable, format_args!("is not served: {GONE}"))
}

struct Thread {
    location: Arc<Location>,
    session: Session,
    lock: LockFile,
    gate: Gate,
    requests: Receiver<Request>,
}

impl Thread {
    fn run(mut self) {
        while let Ok(first) = self.requests.recv() {
            if let Err(error) = self.prepare(&first) {
                if first.claim() {
                    let _ = first.reply.send(Ok(Err(error)));
                }
                continue;
            }
            // The gate makes waiting fair; the lock excludes.
            self.gate.pass();
            let batch = self.batch(first);
            let answers = self.carry_out(&batch);
            self.gate.leave();
            for (request, answer) in batch.into_iter().zip(answers) {
                let _ = request.reply.send(answer);
            }
        }
    }

    /// Requires a command that stores: a read leaves nothing behind.
    fn prepare(&self, request: &Request) -> Result<(), StateError> {
        if !request.command.is_read() || self.location.is_made()? {
            return self.location.make();
        }
        self.location.check()?;
        request.command.check()?;
        Err(rules::no_queue())
    }

    /// Takes up to [`MAX_BATCH_WEIGHT`].
    fn batch(&self, first: Request) -> Vec<Request> {
        let mut weight = 0;
        let mut batch = Vec::new();
        let mut next = Some(first);
        while let Some(request) = next {
            if request.claim() {
                weight += request.weight();
                batch.push(request);
            }
            next = if weight < MAX_BATCH_WEIGHT { self.requests.try_recv().ok() } else { None };
        }
        batch
    }

    fn carry_out(&mut self, batch: &[Request]) -> Vec<Answer> {
        if batch.is_empty() {
            return Vec::new();
        }
        match self.lock.acquire(self.location.lock_wait()) {
            Ok(held) => {
                let commands: Vec<_> =
                    batch.iter().map(|request| (&request.queue, &request.command)).collect();
                self.session.serve(&held, &commands)
            }
            Err(error) => batch.iter().map(|_| Ok(Err(error.clone()))).collect(),
        }
    }
}
