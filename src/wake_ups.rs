//! Whether a shard is woken by others.

/// Whether a shard that went idle in a pause restarts by itself; see
/// [`Builder::wake_ups`](crate::Builder::wake_ups).
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
    /// It waits for its next [`add`](crate::IntervalQueue::add), [`start`](crate::IntervalQueue::start) or
    /// [`tick`](crate::IntervalQueue::tick). The default.
    #[default]
    Off,
    /// It restarts as soon as it hears that any process resumed the queue. While it is paused with jobs
    /// waiting it keeps a small task that watches the state: by a subscription in Redis or PostgreSQL, by
    /// watching the file, by a channel in memory. At any other time it watches nothing.
    ///
    /// A nudge can be lost, on a network mount or while a connection is down. So what ticks it today had
    /// better go on.
    On,
}
