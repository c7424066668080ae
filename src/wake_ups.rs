//! Whether a shard is woken by others.

/// Whether a shard that waits for long is woken by changes that others make; see
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
    /// It goes on as soon as it hears that any process resumed the queue, or changed its settings. While jobs wait
    /// and the queue is paused, or the next slot is more than two seconds away, it keeps a small task that
    /// watches the state: by a subscription in Redis or PostgreSQL, by watching the file, by a channel in
    /// memory. Where the state cannot tell, or not now, that task reads the record every two seconds or so.
    /// At any other time it watches nothing. The default.
    ///
    /// Where changes pass unheard, as on some network mounts, it notices within half a minute.
    #[default]
    On,
    /// In a pause it waits for its next [`add`](crate::IntervalQueue::add),
    /// [`start`](crate::IntervalQueue::start) or [`tick`](crate::IntervalQueue::tick), and has no task and no
    /// I/O meanwhile. Other settings it notices when it next asks, after half its lease at the latest.
    Off,
}
