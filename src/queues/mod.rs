//! Many queues by their keys: one for each customer, host or API key.

mod all;
mod builder;
mod shelf;

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
use self::shelf::{Bounds, Shelf};
use crate::{Builder, IntervalQueue, Shutdown, clock, error::Error};

/// Gives the settings for the queue of a key.
type Make = Box<dyn Fn(&str) -> BoxFuture<'static, Result<Builder, Error>> + Send + Sync>;

/// Thousands of queues on one state, each opened when its key is first asked for and dropped again once it is
/// idle.
///
/// All share the state's one connection. Cloning gives another handle to the same queues.
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
/// // Each customer has a pace of its own, in all processes.
/// let (ada, bob) = (customers.get("ada").await?, customers.get("bob").await?);
/// let jobs = (ada.add(async { "ada" }).await?, bob.add(async { "bob" }).await?);
/// assert_eq!((jobs.0.await?, jobs.1.await?), ("ada", "bob")); // both started at once
/// # Ok(())
/// # }
/// ```
///
/// # What is kept
///
/// A queue is idle when nothing of it waits, runs or is between two attempts, and nobody has a handle to it
/// or to one of its jobs. An idle queue is dropped [60 s](QueuesBuilder::keep_idle) after its last use, or
/// sooner if more than [10,000](QueuesBuilder::max_kept) are kept, the longest unused first.
/// [`get`](Self::get) does that, a few at a time: there is no task and no timer for it, so a process that
/// asks for no key keeps the queues it has, which do nothing.
///
/// Pace and order are in the state, so a queue that is opened again goes on as if it had been kept. What is
/// lost is the shard's memory of the record, by which a shard restores a record that the state has lost.
#[derive(Clone)]
pub struct IntervalQueues {
    inner: Arc<Inner>,
}

struct Inner {
    state: Arc<dyn SharedState>,
    make: Make,
    bounds: Bounds,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    shelf: Shelf,
    /// The queues that are being opened, with the numbers of the openings. A caller that waits for one keeps
    /// it alive, so that one that nobody wants any more ends.
    openings: HashMap<Arc<str>, (u64, WeakShared<Opening>)>,
    opened: u64,
    closed: bool,
}

type Opening = BoxFuture<'static, Result<IntervalQueue, Arc<Error>>>;

/// What is there for a key.
enum Found {
    Kept(IntervalQueue),
    Opening(Shared<Opening>),
}

/// Says that a key is being opened, and takes that back however it ends: the caller may drop the future at
/// any point.
struct Mark {
    inner: Arc<Inner>,
    key: Arc<str>,
    number: u64,
}

impl IntervalQueues {
    pub(crate) fn on(state: Arc<dyn SharedState>, make: Make, bounds: Bounds) -> Self {
        Self { inner: Arc::new(Inner { state, make, bounds, inside: Mutex::default() }) }
    }

    /// The queue of a key: the one that is kept, or else one that is opened now, with one command. Whoever
    /// asks for a key while it is being opened waits for the same opening.
    ///
    /// A queue that was [closed](IntervalQueue::close) through its handle is opened again once it has
    /// finished.
    ///
    /// # Errors
    ///
    /// Those of [`Builder::open`], with the key. Nothing is kept of an opening that failed: the next call
    /// tries again. [`Settings`](crate::ErrorKind::Settings) if they could not be
    /// [loaded](Self::loading). [`Panicked`](crate::ErrorKind::Panicked) if `make` panicked, or
    /// [`Builder::open`] did.
    /// [`Closed`](crate::ErrorKind::Closed) after [`close`](Self::close) or [`shutdown`](Self::shutdown).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe. Others who wait for the same opening go on with it.
    pub async fn get(&self, key: impl AsRef<str>) -> Result<IntervalQueue, Error> {
        match self.inner.find(key.as_ref())? {
            Found::Kept(queue) => Ok(queue),
            Found::Opening(opening) => opening.await.map_err(|error| Error::of_key(key.as_ref(), &error)),
        }
    }

    /// How many queues are kept, with work and idle.
    pub fn len(&self) -> usize {
        self.inner.inside().shelf.len()
    }

    /// Whether no queue is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes no more jobs in any of the queues and opens none from this call on. The future waits until the
    /// accepted jobs have finished; see [`IntervalQueue::close`].
    ///
    /// # Cancel safety
    ///
    /// Dropped, the queues are closed all the same.
    pub fn close(&self) -> impl Future<Output = ()> + Send + use<> {
        let queues = self.inner.close();
        for queue in &queues {
            // It is closed by the call; the waiting is below.
            drop(queue.close());
        }
        async move {
            // Unconstrained, since tokio lets only some of so many futures of one task be ready at a time.
            unconstrained(join_all(queues.iter().map(IntervalQueue::wait_idle))).await;
        }
    }

    /// Ends all queues, each as [`IntervalQueue::shutdown`] does and all with the same grace, and opens none
    /// from then on. What was ended is counted together.
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
    /// What is known by keys. Nothing that belongs to a user runs or is dropped while it is locked.
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue of a key, or its opening.
    fn find(self: &Arc<Self>, key: &str) -> Result<Found, Error> {
        let now = clock::now();
        let (found, _dropped) = {
            let mut inside = self.inside();
            if inside.closed {
                return Err(Error::closed());
            }
            // First, so that the one that is asked for does not go.
            let kept = inside.shelf.get(key, now);
            let dropped = inside.shelf.sweep(now, self.bounds);
            let found = match kept {
                Some(queue) => Found::Kept(queue),
                None => Found::Opening(self.opening(&mut inside, key)),
            };
            (found, dropped)
        };
        Ok(found)
    }

    /// The opening of a key that others wait for, or a new one.
    fn opening(self: &Arc<Self>, inside: &mut Inside, key: &str) -> Shared<Opening> {
        if let Some(opening) = inside.openings.get(key).and_then(|(_, opening)| opening.upgrade()) {
            return opening;
        }
        inside.opened += 1;
        let (key, number) = (Arc::<str>::from(key), inside.opened);
        let mark = Mark { inner: self.clone(), key: key.clone(), number };
        // Caught in there: the others that share a future are not woken if it panics.
        let opening = AssertUnwindSafe(open(mark)).catch_unwind();
        let opening =
            opening.map(|opened| opened.unwrap_or_else(|panic| Err(Error::opening_panicked(&*panic).into())));
        let opening = opening.boxed().shared();
        inside.openings.extend(opening.downgrade().map(|opening| (key, (number, opening))));
        opening
    }

    /// The settings for the queue of a key. The caller may have to catch a panic.
    async fn settings(&self, key: &str) -> Result<Builder, Error> {
        (self.make)(key).await
    }

    /// Opens no more queues. Those there are.
    fn close(&self) -> Vec<IntervalQueue> {
        let mut inside = self.inside();
        inside.closed = true;
        inside.shelf.all()
    }
}

/// Opens the queue of a key and keeps it.
async fn open(mark: Mark) -> Result<IntervalQueue, Arc<Error>> {
    let Mark { inner, key, .. } = &mark;
    let queue = inner.settings(key).await?.open_on(inner.state.clone()).await?;
    let _before = {
        let mut inside = inner.inside();
        if inside.closed {
            drop(inside);
            return Err(Error::closed().into());
        }
        inside.shelf.keep(key.clone(), queue.clone(), clock::now())
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
