//! The label of a queue's metrics.

/// The value of the label `queue`; for [`Builder::metrics_label`](crate::Builder::metrics_label).
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// use interval_queue::{IntervalQueue, telemetry::MetricsLabel};
///
/// // One queue per customer; their numbers add up.
/// let queue = IntervalQueue::builder("customer 4711")
///     .metrics_label(MetricsLabel::Text("customers".into()))
///     .interval(Duration::from_secs(1))
///     .connect("memory:")
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricsLabel {
    /// The name of the queue (default).
    #[default]
    QueueName,
    /// This text. Use few different texts.
    Text(String),
    /// No label: all queues without it add up.
    Absent,
}
