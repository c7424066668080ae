//! The processes of this library: they add tasks, make steps, or run a worker.

use std::{sync::Arc, thread, time::Duration};

use async_trait::async_trait;
use clap::Args;
use interval_queue::{
    QueueName, connect,
    contract::{Changes, StateError},
    task_contract::{Command, Reply, TaskStore},
};
use interval_queue_tasks::{Context, Task, TaskError, TaskQueue, Worker};
use tokio::time::sleep;

use crate::{
    clock,
    hand::{Hand, QUEUE, text},
    tally::Tally,
    task_contender::ADDED,
};

/// The kind of tasks that do nothing.
const NOTHING: &str = "default";
/// The kind of tasks whose payload is the instant at which they should have been added.
const TIMED: &str = "timed";
/// Tasks that become due within this time are added together.
const TICK: Duration = Duration::from_millis(2);
/// How many tasks a process that adds and runs is ahead at most.
const AHEAD: u64 = 500;

/// A process that adds tasks.
#[derive(Clone, Debug, Args)]
pub(crate) struct Adder {
    url: String,
    /// Number of tasks in a command.
    batch: usize,
    /// Bytes of a payload.
    size: usize,
    /// Number of tasks in all.
    count: usize,
    /// Number of tasks a second, each with the instant at which it is due.
    #[arg(long)]
    rate: Option<f64>,
}

/// A process that gives the commands of a worker by itself.
#[derive(Clone, Debug, Args)]
pub(crate) struct Stepper {
    url: String,
    /// Number of tasks that a step completes and leases.
    batch: usize,
}

/// A process with a worker.
#[derive(Clone, Debug, Args)]
pub(crate) struct Runner {
    url: String,
    /// Number of tasks that run at once.
    jobs: u32,
    /// It adds tasks, too.
    #[arg(long)]
    adding: bool,
    /// Its tasks never end.
    #[arg(long)]
    hanging: bool,
    #[arg(long, default_value = "30000")]
    lease_ms: u64,
}

impl Adder {
    pub(crate) async fn work(self) {
        let tally = Arc::new(Tally::default());
        let queue = open(&self.url, &tally).await;
        tally.clone().run(self.add(queue, tally)).await;
    }

    async fn add(self, queue: TaskQueue, tally: Arc<Tally>) {
        if let Some(rate) = self.rate {
            return add_timed(queue, tally, rate).await;
        }
        let payload = text(self.size);
        for _ in 0..self.count / self.batch {
            add(&queue, &payload, self.batch).await;
            tally.add(self.batch);
        }
    }
}

async fn add(queue: &TaskQueue, payload: &str, count: usize) {
    queue.add_all((0..count).map(|_| Task::new(NOTHING, payload))).await.unwrap();
}

/// Offers tasks at random instants, `rate` a second (a Poisson process), whether or not earlier ones have started.
async fn add_timed(queue: TaskQueue, tally: Arc<Tally>, rate: f64) {
    let mut due = clock::monotonic();
    loop {
        let (now, mut instants) = (clock::monotonic(), Vec::new());
        while due <= now {
            instants.push(due);
            due += (-(1.0 - rand::random::<f64>()).ln() / rate * 1e9) as u64;
        }
        queue.add_all(instants.iter().map(|due| Task::new(TIMED, due))).await.unwrap();
        tally.add(instants.len());
        let next = due.max(now + TICK.as_nanos() as u64);
        // Timers of tokio have milliseconds; this thread has nothing else to do.
        thread::sleep(Duration::from_nanos(next.saturating_sub(clock::monotonic())));
    }
}

impl Stepper {
    pub(crate) async fn work(self) {
        let tally = Arc::new(Tally::default());
        let mut hand = Hand::at(&self.url).await;
        let steps = {
            let tally = tally.clone();
            async move {
                loop {
                    let leased = hand.step(self.batch).await;
                    tally.command();
                    if leased == 0 {
                        sleep(TICK).await;
                    } else {
                        tally.add(leased);
                    }
                }
            }
        };
        tally.run(steps).await;
    }
}

impl Runner {
    pub(crate) async fn work(self) {
        let tally = Arc::new(Tally::default());
        let queue = open(&self.url, &tally).await;
        tally.clone().run(self.serve(queue, tally)).await;
    }

    async fn serve(self, queue: TaskQueue, tally: Arc<Tally>) {
        let (plain, timed, hanging) = (tally.clone(), tally.clone(), self.hanging);
        let nothing = move |_: Context<()>, _: String| {
            plain.add(1);
            async move {
                if hanging {
                    std::future::pending::<()>().await;
                }
                Ok::<_, TaskError>(())
            }
        };
        let late = move |_: Context<()>, due: u64| {
            timed.late_since(due);
            async { Ok::<_, TaskError>(()) }
        };
        let worker = Worker::builder(&queue).handler(NOTHING, nothing).handler(TIMED, late).jobs(self.jobs);
        let worker = worker.lease(Duration::from_millis(self.lease_ms)).build().unwrap();
        let adds = async {
            let payload = text(100);
            let mut added = 0;
            if !self.adding {
                return std::future::pending().await;
            }
            loop {
                if added < tally.count() + AHEAD {
                    add(&queue, &payload, ADDED).await;
                    added += ADDED as u64;
                } else {
                    sleep(TICK).await;
                }
            }
        };
        tokio::select! {
            ended = worker.run() => panic!("the worker ended: {ended:?}"),
            () = adds => {}
        }
    }
}

/// The queue, whose commands are counted.
async fn open(url: &str, tally: &Arc<Tally>) -> TaskQueue {
    let store = connect(url).await.unwrap();
    let counted = Counted { store: store.tasks().await.unwrap(), tally: tally.clone() };
    let pace = store.rates().await.unwrap();
    TaskQueue::builder(QUEUE).open_parts(Arc::new(counted), pace).await.unwrap()
}

/// A store that counts its commands.
#[derive(Debug)]
struct Counted {
    store: Arc<dyn TaskStore>,
    tally: Arc<Tally>,
}

#[async_trait]
impl TaskStore for Counted {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        self.tally.command();
        self.store.apply(queue, command).await
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        self.store.queues().await
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.store.changes(queue).await
    }
}
