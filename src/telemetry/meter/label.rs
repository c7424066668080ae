//! Under which label the metrics of a queue stand.

/// What the label `queue` of its metrics says; for [`Builder::metrics_label`](crate::Builder::metrics_label).
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// use interval_queue::{IntervalQueue, telemetry::MetricsLabel};
///
/// // A queue for each of many customers: their numbers add up.
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
    /// The name of the queue. The default.
    #[default]
    QueueName,
    /// This text, of which there should not be many.
    Text(String),
    /// There is no such label: all queues without it add up.
    Absent,
}
