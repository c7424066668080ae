//! A rate that is given to a queue, changed and removed while workers run.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use interval_queue::{
    MemoryState, QueueName, SharedState, StateError, StateErrorKind,
    contract::{Changes, Command, Reply},
};
use interval_queue_tasks::{
    Context, ErrorKind, Permits, QueueOrder, Task, TaskError, TaskQueue, Worker, WorkerBuilder,
};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

use crate::common::{Faulty, builder, ms, now, secs, spawned};

/// A record of rates that counts its looks, and can fail.
#[derive(Clone, Debug, Default)]
struct Record {
    state: MemoryState,
    looks: Arc<AtomicUsize>,
    is_down: Arc<AtomicBool>,
}

#[async_trait]
impl SharedState for Record {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        if self.is_down.load(Ordering::Relaxed) {
            return Err(StateError::new(StateErrorKind::Unreachable, "the record is down"));
        }
        self.looks.fetch_add(usize::from(command == Command::Read), Ordering::Relaxed);
        self.state.apply(queue, command).await
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.state.changes(queue).await
    }
}

/// When runs of all workers began.
#[derive(Clone)]
struct Runs {
    began: Arc<Mutex<Vec<Instant>>>,
    take: Duration,
}

impl Runs {
    fn taking(take: Duration) -> Self {
        Self { began: Arc::default(), take }
    }

    fn worker(&self, queue: &TaskQueue) -> WorkerBuilder {
        let runs = self.clone();
        Worker::builder(queue).handler("a", move |_: Context, (): ()| {
            let runs = runs.clone();
            async move {
                runs.began.lock().unwrap().push(now());
                sleep(runs.take).await;
                Ok::<_, TaskError>(())
            }
        })
    }

    fn count(&self) -> usize {
        self.began.lock().unwrap().len()
    }

    /// The shortest time between two starts from then on.
    fn closest_since(&self, since: Instant) -> Duration {
        let mut began = self.began.lock().unwrap().clone();
        began.retain(|at| *at >= since);
        began.sort();
        began.windows(2).map(|pair| pair[1] - pair[0]).min().expect("runs have begun")
    }
}

async fn add(queue: &TaskQueue, count: usize) {
    queue.add_all((0..count).map(|_| Task::new("a", &()))).await.unwrap();
}

/// Two processes, each with a worker.
async fn crew(runs: &Runs) -> ([TaskQueue; 2], Vec<JoinHandle<interval_queue_tasks::Totals>>) {
    let store = Faulty::new();
    let queues = [store.open(builder()).await, store.beside().open(builder()).await];
    let workers = queues.iter().map(|queue| spawned(runs.worker(queue).build().unwrap())).collect();
    (queues, workers)
}

#[tokio::test(start_paused = true)]
async fn a_rate_change_acts_from_the_next_start_on() {
    let runs = Runs::taking(ms(100));
    let (queues, workers) = crew(&runs).await;
    add(&queues[0], 3_000).await;
    sleep(secs(2)).await;
    assert!(runs.count() > 300, "{} started without a rate", runs.count());

    queues[0].set_rate_limit(ms(500)).await.unwrap();
    let set = now();
    sleep(ms(110)).await;
    let before = runs.count();
    sleep(secs(20)).await;
    let paced = runs.count() - before;
    assert!((38..=41).contains(&paced), "{paced} started in 20 s");
    assert!(runs.closest_since(set + ms(110)) >= ms(499));

    queues[1].set_rate_limit(ms(200)).await.unwrap();
    sleep(secs(1)).await;
    let (changed, before) = (now(), runs.count());
    sleep(secs(20)).await;
    let paced = runs.count() - before;
    assert!((98..=101).contains(&paced), "{paced} started in 20 s");
    assert!(runs.closest_since(changed) >= ms(199));

    queues[1].remove_rate_limit().await.unwrap();
    sleep(ms(1_100)).await;
    let before = runs.count();
    sleep(secs(2)).await;
    assert!(runs.count() - before > 300, "{} started in 2 s", runs.count() - before);
    workers.iter().for_each(JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_leased_under_a_rate_never_starts_outside_it() {
    let runs = Runs::taking(ms(1));
    let (queues, workers) = crew(&runs).await;
    sleep(secs(5)).await;
    let set = now();
    queues[0].set_rate_limit(secs(1)).await.unwrap();
    add(&queues[1], 20).await;
    sleep(secs(25)).await;
    assert_eq!(runs.count(), 20);
    assert!(runs.closest_since(set) >= ms(999), "{:?}", runs.closest_since(set));
    workers.iter().for_each(JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn tasks_in_hand_go_through_a_rate_that_is_set_later() {
    let runs = Runs::taking(secs(60));
    let queue = Faulty::new().open(builder()).await;
    add(&queue, 8).await;
    let running = spawned(runs.worker(&queue).jobs(4).prefetch(4).build().unwrap());
    sleep(secs(30)).await;
    assert_eq!(runs.count(), 4);
    queue.set_rate_limit(secs(10)).await.unwrap();
    let set = now();
    sleep(secs(120)).await;
    assert_eq!(runs.count(), 8);
    assert!(runs.closest_since(set) >= ms(9_999), "{:?}", runs.closest_since(set));
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_waiting_task_starts_within_a_second_of_the_rates_removal() {
    let runs = Runs::taking(ms(1));
    let queue = Faulty::new().open(builder().interval(secs(1))).await;
    let running = spawned(runs.worker(&queue).jobs(1).build().unwrap());
    queue.rate_limit().await.unwrap().unwrap().hold(secs(3_600)).await.unwrap();
    add(&queue, 3).await;
    sleep(secs(60)).await;
    assert_eq!(runs.count(), 0);
    queue.remove_rate_limit().await.unwrap();
    sleep(ms(1_200)).await;
    assert_eq!(runs.count(), 3);
    assert!(queue.rate_limit().await.unwrap().is_none(), "no worker brings it back");
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn an_idle_worker_forgets_a_rate_that_is_removed() {
    let runs = Runs::taking(ms(1));
    let (queues, workers) = crew(&runs).await;
    queues[0].set_rate_limit(secs(600)).await.unwrap();
    add(&queues[0], 1).await;
    sleep(secs(5)).await;
    queues[0].remove_rate_limit().await.unwrap();
    sleep(secs(60)).await;
    add(&queues[0], 100).await;
    sleep(secs(2)).await;
    assert_eq!(runs.count(), 101);
    assert!(queues[1].rate_limit().await.unwrap().is_none());
    workers.iter().for_each(JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn a_rate_acts_on_workers_that_share_places() {
    let store = Faulty::new();
    let queues = [store.open(builder()).await, store.open(TaskQueue::builder("other")).await];
    let (runs, others) = (Runs::taking(ms(100)), Runs::taking(ms(100)));
    let permits = Permits::new(4, QueueOrder::RoundRobin);
    let workers = [
        spawned(runs.worker(&queues[0]).permits(&permits).build().unwrap()),
        spawned(others.worker(&queues[1]).permits(&permits).build().unwrap()),
    ];
    sleep(secs(1)).await;
    queues[0].set_rate_limit(secs(1)).await.unwrap();
    let set = now();
    add(&queues[0], 200).await;
    add(&queues[1], 200).await;
    sleep(secs(10)).await;
    assert!((9..=11).contains(&runs.count()), "{}", runs.count());
    assert!(runs.closest_since(set) >= ms(999));
    assert_eq!(others.count(), 200, "the queue without a rate has the other permits");
    queues[0].remove_rate_limit().await.unwrap();
    sleep(secs(8)).await;
    assert_eq!(runs.count(), 200);
    workers.iter().for_each(JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn a_queue_returns_the_stored_rate() {
    let store = Faulty::new();
    let (queue, other) = (store.open(builder()).await, store.beside().open(builder()).await);
    let interval = async |queue: &TaskQueue| queue.rate_limit().await.unwrap().map(|pace| pace.interval());
    assert_eq!(interval(&queue).await, None);
    other.set_rate_limit(ms(300)).await.unwrap();
    assert_eq!(interval(&queue).await, Some(ms(300)));
    other.remove_rate_limit().await.unwrap();
    other.remove_rate_limit().await.unwrap();
    assert_eq!(interval(&queue).await, None);
    assert_eq!(queue.set_rate_limit(Duration::ZERO).await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test(start_paused = true)]
async fn nothing_starts_while_the_rate_cannot_be_read() {
    let record = Record::default();
    let store = Faulty::new();
    let queue = builder().open_parts(Arc::new(store), Arc::new(record.clone())).await.unwrap();
    let runs = Runs::taking(ms(1));
    let running = spawned(runs.worker(&queue).build().unwrap());
    sleep(secs(1)).await;
    record.is_down.store(true, Ordering::Relaxed);
    add(&queue, 5).await;
    sleep(secs(60)).await;
    assert_eq!(runs.count(), 0);
    record.is_down.store(false, Ordering::Relaxed);
    sleep(secs(2)).await;
    assert_eq!(runs.count(), 5);
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn an_idle_worker_looks_up_no_rate_and_a_busy_one_once_a_step() {
    let record = Record::default();
    let store = Faulty::new();
    let queue = builder().open_parts(Arc::new(store.clone()), Arc::new(record.clone())).await.unwrap();
    let runs = Runs::taking(ms(1));
    let running = spawned(runs.worker(&queue).build().unwrap());
    sleep(secs(1)).await;
    let looks = || record.looks.load(Ordering::Relaxed);
    let before = looks();
    sleep(secs(3_600)).await;
    assert_eq!(looks(), before);
    let steps = store.steps();
    add(&queue, 5_000).await;
    sleep(secs(60)).await;
    assert_eq!(runs.count(), 5_000);
    let (looked, stepped) = (looks() - before, store.steps() - steps);
    assert!(looked <= stepped, "{looked} looks for {stepped} steps");
    running.abort();
}
