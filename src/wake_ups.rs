//! Whether a shard is woken by others.

/// Whether a shard that went idle in a pause restarts by itself; see
/// [`Builder::wake_ups`](crate::Builder::wake_ups).
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use interval_queue::{IntervalQueue, MemoryState};
///
/// let state = MemoryState::new();
/// let open = || IntervalQueue::builder("mail").interval(Duration::from_millis(100));
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
    /// It restarts as soon as it hears that any process resumed the queue. While it is paused with jobs
    /// waiting it keeps a small task that watches the state: by a subscription in Redis or PostgreSQL, by
    /// watching the file, by a channel in memory. Where the state cannot tell, or not now, that task reads
    /// the record every two seconds or so. At any other time it watches nothing. The default.
    ///
    /// A nudge can be lost, on a network mount, say. A tick from outside makes up for it.
    #[default]
    On,
    /// It waits for its next [`add`](crate::IntervalQueue::add), [`start`](crate::IntervalQueue::start) or
    /// [`tick`](crate::IntervalQueue::tick), and has no task and no I/O meanwhile.
    Off,
}
