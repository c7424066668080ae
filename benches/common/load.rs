//! A queue in memory that is filled while it is paused, and then let go.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures::future::join_all;
use interval_queue::{IntervalQueue, JobHandle, MemoryState};
use tokio::{sync::Notify, task::unconstrained};

/// How many adds are under way at once.
const TOGETHER: u64 = 10_000;

/// A paused queue and a count of what started in it.
#[derive(Debug)]
pub(crate) struct Load {
    queue: IntervalQueue,
    count: Arc<Count>,
}

#[derive(Debug, Default)]
struct Count {
    started: AtomicU64,
    /// Which start is waited for, and when it came.
    awaited: AtomicU64,
    came: Mutex<Option<Instant>>,
    told: Notify,
}

impl Count {
    fn one_more(&self) {
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        if number == self.awaited.load(Ordering::Relaxed) {
            *self.came.lock().unwrap() = Some(Instant::now());
            self.told.notify_one();
        }
    }
}

impl Load {
    /// An empty queue that allows a start every microsecond.
    pub(crate) async fn new() -> Self {
        let interval = Duration::from_micros(1);
        let queue = IntervalQueue::builder("load").interval(interval).open(MemoryState::new()).await.unwrap();
        queue.pause().await.unwrap();
        Self { queue, count: Arc::default() }
    }

    /// Adds jobs until so many wait.
    pub(crate) async fn fill(&self, waiting: u64) {
        let job = || {
            let count = self.count.clone();
            async move { count.one_more() }
        };
        // More than once: what was granted before the pause may start meanwhile.
        loop {
            let missing = waiting.saturating_sub(self.queue.waiting() as u64);
            if missing == 0 {
                return;
            }
            drop(add_all(&self.queue, missing, job).await);
        }
    }

    /// Lets so many start, and a few more. Returns how long it took until the last of them ran.
    pub(crate) async fn start(&self, starts: u64) -> Duration {
        let awaited = self.count.started.load(Ordering::Relaxed) + starts;
        self.count.awaited.store(awaited, Ordering::Relaxed);
        let began = Instant::now();
        self.queue.resume().await.unwrap();
        self.count.told.notified().await;
        self.queue.pause().await.unwrap();
        let came = self.count.came.lock().unwrap().take();
        came.expect("it was told") - began
    }

    /// Ends the queue and all that wait.
    pub(crate) async fn end(self) {
        self.queue.shutdown(Duration::from_secs(60)).await;
    }
}

/// Adds so many jobs, many at once.
pub(crate) async fn add_all<F>(
    queue: &IntervalQueue,
    count: u64,
    job: impl Fn() -> F,
) -> Vec<JobHandle<F::Output>>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let mut handles = Vec::with_capacity(usize::try_from(count).unwrap());
    let mut left = count;
    while left > 0 {
        let together = left.min(TOGETHER);
        // Unconstrained, since tokio lets only some of so many futures of one task be ready at a time, and
        // all are asked.
        let added = unconstrained(join_all((0..together).map(|_| queue.add(job())))).await;
        handles.extend(added.into_iter().map(Result::unwrap));
        left -= together;
    }
    handles
}
