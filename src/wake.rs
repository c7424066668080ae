//! Wake-ups: a shard that went idle in a pause watches the queue, and goes on when it is resumed.
//!
//! One task a shard, alive only while the queue is paused and jobs wait. It never starts anything itself: it nudges the
//! driver, which asks the state. So a nudge too many costs a command, and one that is lost leaves the shard to its tick.

use std::{
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures::{FutureExt, StreamExt};
use interval_queue_contract::{Changes, QueueName, SharedState, StateError, StateErrorKind};

use crate::{
    IntervalQueue,
    host::{Host, timeout},
    line::talk::{COMMAND_TIMEOUT, RETRY},
    shard::{Shard, timed_out},
};

/// Whether a shard that went idle in a pause restarts by itself; see [`Builder::wake_ups`](crate::Builder::wake_ups).
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use interval_queue::{IntervalQueue, MemoryState, WakeUps};
///
/// let state = MemoryState::new();
/// let open = || IntervalQueue::builder("mail").interval(Duration::from_millis(100)).wake_ups(WakeUps::On);
/// let (one, other) = (open().open(state.clone()).await?, open().open(state).await?);
/// one.pause().await?;
/// let job = other.add(async { "sent" }).await?;
/// one.resume().await?;
/// assert_eq!(job.await?, "sent"); // with wake-ups off, `other` would wait for its tick
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WakeUps {
    /// It waits for its next [`add`](IntervalQueue::add), [`start`](IntervalQueue::start) or [`tick`](IntervalQueue::tick).
    /// The default.
    #[default]
    Off,
    /// It restarts as soon as it hears that any process resumed the queue. While it is paused with jobs waiting it keeps a
    /// small task that watches the state: by a subscription in Redis or PostgreSQL, by watching the file, by a channel in memory.
    /// At any other time it watches nothing.
    ///
    /// A nudge can be lost, on a network mount or while a connection is down. So what ticks it today had better go on.
    On,
}

impl WakeUps {
    /// Watches once, to find out whether the state can.
    pub(crate) async fn check(
        self,
        state: &dyn SharedState,
        queue: &QueueName,
        host: &Arc<dyn Host>,
    ) -> Result<(), StateError> {
        match self {
            Self::Off => Ok(()),
            Self::On => begin(state, queue, host).await.map(drop),
        }
    }
}

/// What a shard knows of its watching.
#[derive(Debug)]
pub(crate) struct Wake {
    choice: WakeUps,
    is_watched: AtomicBool,
}

impl Wake {
    pub(crate) fn new(choice: WakeUps) -> Self {
        Self { choice, is_watched: AtomicBool::new(false) }
    }
}

/// Has the queue watched if the shard has gone idle in a pause, or will. To be called after each reply.
pub(crate) fn watch(shard: &Arc<Shard>) {
    if shard.wake.choice == WakeUps::On && is_wanted(shard) && claim(shard) {
        shard.host.spawn(Box::pin(keep_watching(Watching::new(shard.clone()))));
    }
}

fn is_wanted(shard: &Shard) -> bool {
    let line = shard.line();
    line.memory.paused && line.waiting() > 0
}

fn claim(shard: &Shard) -> bool {
    !shard.wake.is_watched.swap(true, Ordering::AcqRel)
}

/// Says that the queue is watched, and takes that back however it ends: the runtime may drop it anywhere.
struct Watching {
    shard: Arc<Shard>,
    ended: bool,
}

impl Watching {
    fn new(shard: Arc<Shard>) -> Self {
        Self { shard, ended: false }
    }

    /// Ends by itself.
    fn end(mut self) {
        self.ended = true;
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.shard.wake.is_watched.store(false, Ordering::Release);
        if !self.ended {
            let mut line = self.shard.line();
            if line.waiting() > 0 {
                // The driver may have stopped and left the pause to us. The next one asks, and has it watched again.
                line.orphaned = true;
                line.nudge(self.shard.host.now());
            }
        }
    }
}

async fn keep_watching(mut watching: Watching) {
    let shard = watching.shard.clone();
    loop {
        until_over(&shard, nudge_on_changes(&shard)).await;
        watching.end();
        // It may be paused again by now; a driver that heard of that found it watched.
        if !is_wanted(&shard) || !claim(&shard) {
            return;
        }
        watching = Watching::new(shard.clone());
    }
}

/// Does something until the pause is over or nothing waits any more.
async fn until_over(shard: &Shard, work: impl Future<Output = ()>) {
    let mut work = pin!(work);
    loop {
        let mut answered = pin!(shard.answered.notified());
        answered.as_mut().enable();
        if !is_wanted(shard) {
            return;
        }
        tokio::select! {
            biased;
            () = answered => {}
            () = &mut work => return,
        }
    }
}

/// The least time between two nudges: no state can make its shards ask in a circle.
const GAP: Duration = Duration::from_millis(20);

async fn nudge_on_changes(shard: &Arc<Shard>) {
    let queue = IntervalQueue { shard: shard.clone() };
    let mut delays = None;
    let mut is_told = false;
    loop {
        let error = match begin(&*shard.state, &shard.queue, &shard.host).await {
            Err(error) => error,
            Ok(mut changes) => {
                // What was changed before is not told.
                queue.start();
                while next(&mut changes).await.is_some() {
                    (delays, is_told) = (None, false);
                    queue.start();
                    shard.host.sleep_until(shard.host.now() + GAP).await;
                }
                StateError::new(StateErrorKind::Unreachable, "the watching ended")
            }
        };
        if !is_told {
            shard.telemetry.watch_failed(&error);
            is_told = true;
        }
        let delay = delays.get_or_insert_with(|| backoff(shard.host.random())).next().unwrap_or(RETRY.1);
        shard.host.sleep_until(shard.host.now() + delay).await;
    }
}

fn backoff(seed: u64) -> ExponentialBackoff {
    let delays = ExponentialBuilder::new().with_min_delay(RETRY.0).with_max_delay(RETRY.1);
    delays.without_max_times().with_jitter().with_jitter_seed(seed).build()
}

/// Begins to watch, bounded in time. A backend that panics has failed.
async fn begin(
    state: &dyn SharedState,
    queue: &QueueName,
    host: &Arc<dyn Host>,
) -> Result<Changes, StateError> {
    let begun = AssertUnwindSafe(async { state.changes(queue).await }).catch_unwind();
    match timeout(host, COMMAND_TIMEOUT, begun).await {
        Some(Ok(begun)) => begun,
        Some(Err(_)) => Err(StateError::new(StateErrorKind::Unreachable, "the state backend panicked")),
        None => Err(timed_out()),
    }
}

/// The next item; none: there are no more.
async fn next(changes: &mut Changes) -> Option<()> {
    AssertUnwindSafe(changes.next()).catch_unwind().await.unwrap_or_default()
}
