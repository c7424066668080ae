//! [`WakeUps`], an option of a queue.

/// Whether other processes' changes wake a shard that waits for long; see
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
    /// The default. The shard continues when notified that a process resumed the queue or changed
    /// its settings. While jobs wait and the queue is paused, or the next slot is more than two
    /// seconds away, a small task watches the store: by a subscription (Redis, PostgreSQL), a
    /// channel (memory), or the file (JSON file with the feature `json-file-watch`). If the store
    /// cannot notify, the task reads the record about every two seconds.
    ///
    /// If notifications are lost, as on some network mounts, the shard notices changes within half
    /// a minute.
    #[default]
    On,
    /// A paused shard waits for its next [`add`](crate::IntervalQueue::add),
    /// [`start`](crate::IntervalQueue::start) or [`tick`](crate::IntervalQueue::tick), without a
    /// task or I/O. It notices new settings when it next polls, within half its lease.
    Off,
}
