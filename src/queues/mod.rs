//! Many queues by key: one per customer, host or API key.

mod all;
mod builder;
mod cache;

use std::{
    collections::HashMap,
    fmt,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared, join_all},
};
use interval_queue_contract::SharedState;
use tokio::task::unconstrained;

pub use self::builder::QueuesBuilder;
use self::cache::{Bounds, QueueCache};
use crate::{Builder, IntervalQueue, Shutdown, clock, error::Error};

type Make = Box<dyn Fn(&str) -> BoxFuture<'static, Result<Builder, Error>> + Send + Sync>;

/// Thousands of queues on one store. Each is opened when its key is first requested, and dropped
/// when idle.
///
/// The queues share one connection. Cloning returns another handle to them.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use interval_queue::{IntervalQueue, IntervalQueues};
///
/// let customers = IntervalQueues::connect("memory:", |customer| {
///     IntervalQueue::builder(format!("customer/{customer}")).interval(Duration::from_secs(1))
/// })
/// .await?;
///
/// // Each customer has its own rate, over all processes.
/// let (ada, bob) = (customers.get("ada").await?, customers.get("bob").await?);
/// let jobs = (ada.add(async { "ada" }).await?, bob.add(async { "bob" }).await?);
/// assert_eq!((jobs.0.await?, jobs.1.await?), ("ada", "bob")); // both started at once
/// # Ok(())
/// # }
/// ```
///
/// # What is kept
///
/// A queue is idle if no job waits, runs or is between two attempts, and nobody holds a handle to
/// it or its jobs. An idle queue is dropped [60 s](QueuesBuilder::keep_idle) after its last use, or
/// sooner, least recently used first, if more than [10,000](QueuesBuilder::max_kept) are kept. Only
/// [`get`](Self::get) drops queues, a few at a time. A process that requests no key keeps its
/// queues, which do nothing.
///
/// Rate and order are stored, so a reopened queue continues as before. It has lost only the shard's
/// memory, which could restore a record that the store lost.
#[derive(Clone)]
pub struct IntervalQueues {
    inner: Arc<Inner>,
}

struct Inner {
    state: Arc<dyn SharedState>,
    make: Make,
    bounds: Bounds,
    inside: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    cache: QueueCache,
    /// Numbered. Only callers hold an opening: without callers it is dropped.
    openings: HashMap<Arc<str>, (u64, WeakShared<Opening>)>,
    opened: u64,
    closed: bool,
}

type Opening = BoxFuture<'static, Result<IntervalQueue, Arc<Error>>>;

enum Found {
    Kept(IntervalQueue),
    Opening(Shared<Opening>),
}

/// The caller may drop the future at any point.
struct Mark {
    inner: Arc<Inner>,
    key: Arc<str>,
    number: u64,
}

impl IntervalQueues {
    pub(crate) fn on(state: Arc<dyn SharedState>, make: Make, bounds: Bounds) -> Self {
        Self { inner: Arc::new(Inner { state, make, bounds, inside: Mutex::default() }) }
    }

    /// The kept queue of a key, or one opened now with one command. Concurrent calls for a key
    /// share one opening.
    ///
    /// A queue that was [closed](IntervalQueue::close) through its handle is opened again after it
    /// has finished.
    ///
    /// # Errors
    ///
    /// As [`Builder::open`], with the key; the next call tries again.
    /// [`Settings`](crate::ErrorKind::Settings) if [loading](Self::loading) failed.
    /// [`Panicked`](crate::ErrorKind::Panicked) if `make` or [`Builder::open`] panicked.
    /// [`Closed`](crate::ErrorKind::Closed) after [`close`](Self::close) or
    /// [`shutdown`](Self::shutdown).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe. Other callers of the opening are not affected.
    pub async fn get(&self, key: impl AsRef<str>) -> Result<IntervalQueue, Error> {
        match self.inner.find(key.as_ref())? {
            Found::Kept(queue) => Ok(queue),
            Found::Opening(opening) => opening.await.map_err(|error| Error::of_key(key.as_ref(), &error)),
        }
    }

    /// The number of kept queues, busy and idle.
    pub fn len(&self) -> usize {
        self.inner.inside().cache.len()
    }

    /// Whether no queue is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// From this call on, accepts no job in any queue and opens no queue. The future waits until
    /// the accepted jobs have finished; see [`IntervalQueue::close`].
    ///
    /// # Cancel safety
    ///
    /// The queues are closed even if the future is dropped.
    pub fn close(&self) -> impl Future<Output = ()> + Send + use<> {
        let queues = self.inner.close();
        for queue in &queues {
            // The call has closed the queue; the future only waits.
            drop(queue.close());
        }
        async move {
            // Unconstrained: tokio's budget lets only some of a task's futures be ready at a time.
            unconstrained(join_all(queues.iter().map(IntervalQueue::wait_idle))).await;
        }
    }

    /// Ends all queues as [`IntervalQueue::shutdown`] does, with one `grace`, and opens none from
    /// then on. Returns the sums of all queues.
    ///
    /// # Cancel safety
    ///
    /// As [`IntervalQueue::shutdown`].
    pub async fn shutdown(&self, grace: Duration) -> Shutdown {
        let queues = self.inner.close();
        let ended = unconstrained(join_all(queues.iter().map(|queue| queue.shutdown(grace)))).await;
        ended.into_iter().fold(Shutdown { cancelled: 0, aborted: 0 }, |sum, one| Shutdown {
            cancelled: sum.cancelled + one.cancelled,
            aborted: sum.aborted + one.aborted,
        })
    }
}

impl Inner {
    /// No user code runs and no user value is dropped under this lock.
    fn inside(&self) -> MutexGuard<'_, Entries> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(self: &Arc<Self>, key: &str) -> Result<Found, Error> {
        let now = clock::now();
        let (found, _dropped) = {
            let mut inside = self.inside();
            if inside.closed {
                return Err(Error::closed());
            }
            // Before the eviction, which must spare the requested queue.
            let kept = inside.cache.get(key, now);
            let dropped = inside.cache.evict(now, self.bounds);
            let found = match kept {
                Some(queue) => Found::Kept(queue),
                None => Found::Opening(self.opening(&mut inside, key)),
            };
            (found, dropped)
        };
        Ok(found)
    }

    fn opening(self: &Arc<Self>, inside: &mut Entries, key: &str) -> Shared<Opening> {
        if let Some(opening) = inside.openings.get(key).and_then(|(_, opening)| opening.upgrade()) {
            return opening;
        }
        inside.opened += 1;
        let (key, number) = (Arc::<str>::from(key), inside.opened);
        let mark = Mark { inner: self.clone(), key: key.clone(), number };
        // Inside: a panic would not wake the other callers of a shared future.
        let opening = AssertUnwindSafe(open(mark)).catch_unwind();
        let opening =
            opening.map(|opened| opened.unwrap_or_else(|panic| Err(Error::opening_panicked(&*panic).into())));
        let opening = opening.boxed().shared();
        inside.openings.extend(opening.downgrade().map(|opening| (key, (number, opening))));
        opening
    }

    /// `make` may panic.
    async fn settings(&self, key: &str) -> Result<Builder, Error> {
        (self.make)(key).await
    }

    /// Returns the kept queues.
    fn close(&self) -> Vec<IntervalQueue> {
        let mut inside = self.inside();
        inside.closed = true;
        inside.cache.all()
    }
}

async fn open(mark: Mark) -> Result<IntervalQueue, Arc<Error>> {
    let Mark { inner, key, .. } = &mark;
    let queue = inner.settings(key).await?.open_on(inner.state.clone()).await?;
    let _before = {
        let mut inside = inner.inside();
        if inside.closed {
            drop(inside);
            return Err(Error::closed().into());
        }
        inside.cache.keep(key.clone(), queue.clone(), clock::now())
    };
    Ok(queue)
}

impl Drop for Mark {
    fn drop(&mut self) {
        let mut inside = self.inner.inside();
        if inside.openings.get(&self.key).is_some_and(|(number, _)| *number == self.number) {
            inside.openings.remove(&self.key);
        }
    }
}

impl fmt::Debug for IntervalQueues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntervalQueues")
            .field("state", &self.inner.state)
            .field("kept", &self.len())
            .finish_non_exhaustive()
    }
}
