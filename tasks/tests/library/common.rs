//! A store that can be harmed, and what tests share.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use interval_queue::{MemoryState, QueueName, StateError, StateErrorKind, contract::Changes};
use interval_queue_memory::MemoryTasks;
use interval_queue_tasks::{
    Builder, Stored, TaskId, TaskQueue, TaskStore, Worker, WorkerBuilder,
    contract::{Command, Reply},
};
use tokio::time::Instant;

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[allow(clippy::disallowed_methods, reason = "tests measure by tokio's clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The memory, which answers as badly as it is told.
#[derive(Clone, Debug)]
pub(crate) struct Faulty {
    pub(crate) tasks: MemoryTasks,
    pub(crate) pace: MemoryState,
    /// Whether nothing gets through.
    pub(crate) down: Arc<AtomicBool>,
    /// So many answers are lost of commands that are obeyed.
    pub(crate) lost: Arc<AtomicUsize>,
    /// So many milliseconds the next command takes.
    pub(crate) slow: Arc<AtomicUsize>,
    /// How many steps there were.
    pub(crate) steps: Arc<AtomicUsize>,
    /// What it tells of itself to a command of this process alone.
    pub(crate) error: Arc<Mutex<Option<StateErrorKind>>>,
}

impl Faulty {
    pub(crate) fn new() -> Self {
        Self {
            tasks: MemoryTasks::new(),
            pace: MemoryState::new(),
            down: Arc::default(),
            lost: Arc::default(),
            slow: Arc::default(),
            steps: Arc::default(),
            error: Arc::default(),
        }
    }

    /// Another way to the same memory, with faults of its own.
    pub(crate) fn beside(&self) -> Self {
        Self { tasks: self.tasks.clone(), pace: self.pace.clone(), ..Self::new() }
    }

    pub(crate) async fn open(&self, builder: Builder) -> TaskQueue {
        builder.open_parts(Arc::new(self.clone()), Arc::new(self.pace.clone())).await.unwrap()
    }

    pub(crate) fn steps(&self) -> usize {
        self.steps.load(Ordering::Relaxed)
    }

    pub(crate) fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::Relaxed);
    }
}

#[async_trait]
impl TaskStore for Faulty {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        if self.down.load(Ordering::Relaxed) {
            return Err(StateError::new(StateErrorKind::Unreachable, "the store is down").without_effect());
        }
        if let Some(kind) = *self.error.lock().unwrap() {
            return Err(StateError::new(kind, "the store refuses"));
        }
        self.steps.fetch_add(usize::from(matches!(command, Command::Step(_))), Ordering::Relaxed);
        let slow = self.slow.swap(0, Ordering::Relaxed);
        if slow > 0 {
            tokio::time::sleep(ms(slow as u64)).await;
        }
        let reply = self.tasks.apply(queue, command).await;
        let loses = self.lost.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        match loses {
            Ok(_) => Err(StateError::new(StateErrorKind::TimedOut, "no answer in time")),
            Err(_) => reply,
        }
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        self.tasks.queues().await
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        if self.down.load(Ordering::Relaxed) {
            return Err(StateError::new(StateErrorKind::Unreachable, "the store is down"));
        }
        self.tasks.changes(queue).await
    }
}

/// A queue with nothing special in a memory of its own.
pub(crate) async fn queue() -> TaskQueue {
    TaskQueue::builder("test").connect("memory:").await.unwrap()
}

pub(crate) fn builder() -> Builder {
    TaskQueue::builder("test")
}

/// Runs all there is to its end.
pub(crate) async fn finish<S: Send + Sync + 'static>(
    worker: WorkerBuilder<S>,
) -> interval_queue_tasks::Totals {
    worker.build().unwrap().run_until_empty().await.unwrap()
}

/// A worker that runs in the background until its handle stops it.
pub(crate) fn spawned(worker: Worker) -> tokio::task::JoinHandle<interval_queue_tasks::Totals> {
    tokio::spawn(async move { worker.run().await.unwrap() })
}

pub(crate) async fn stored(queue: &TaskQueue, id: TaskId) -> Stored {
    queue.task(id).await.unwrap().expect("the task is stored")
}

/// What is seen of a run that may be dropped: whether it lives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alive(pub(crate) Arc<AtomicUsize>);

impl Alive {
    pub(crate) fn begin(&self) -> AliveGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        AliveGuard(self.0.clone())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

pub(crate) struct AliveGuard(Arc<AtomicUsize>);

impl Drop for AliveGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
