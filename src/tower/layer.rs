//! The layer that paces calls.

use tower_layer::Layer;

use super::{Interval, PerRequestLayer, slot::Pace};
use crate::{IntervalQueue, JobOptions};

/// Paces the calls of a service: each call takes a slot of the queue.
///
/// Services of the layer and its clones share the rate, also across processes. See the module's
/// [documentation](super) for readiness, errors and late calls.
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it is around a service"]
pub struct IntervalLayer {
    pace: Pace,
}

impl IntervalLayer {
    /// A layer whose calls are ordinary jobs of `queue`.
    pub fn new(queue: IntervalQueue) -> Self {
        Self { pace: Pace { queue, options: JobOptions::new() } }
    }

    /// The job options of each call. Default: [`JobOptions::new`]. Invalid options fail each call.
    pub fn options(mut self, options: JobOptions) -> Self {
        self.pace.options = options;
        self
    }

    /// Computes the job options from each request, e.g. a higher weight for an expensive call.
    ///
    /// The response future enters the queue when it is first polled, because `poll_ready` runs
    /// before the request is known. So the queue gives no back-pressure: any number of requests can
    /// wait, each with the resources that the inner service reserved for it. To bound them, put a
    /// `ConcurrencyLimit` above this layer and shed load or time out there.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// use std::time::Duration;
    /// use interval_queue::{IntervalQueue, JobOptions, tower::IntervalLayer};
    /// use tower::{ServiceBuilder, ServiceExt, service_fn};
    ///
    /// // A model that takes 1,000 tokens a second.
    /// let queue = IntervalQueue::builder("model").interval(Duration::from_millis(1)).connect("memory:").await?;
    /// let model = service_fn(async |prompt: &'static str| Ok::<_, std::io::Error>(prompt.len()));
    /// let tokens = |prompt: &&str| u32::try_from(prompt.len()).unwrap_or(u32::MAX).max(1);
    /// let client = ServiceBuilder::new()
    ///     .layer(IntervalLayer::new(queue).options_for(move |prompt| JobOptions::new().weight(tokens(prompt))))
    ///     .service(model);
    /// assert_eq!(client.oneshot("What is the answer?").await?, 19);
    /// # Ok(())
    /// # }
    /// ```
    pub fn options_for<R, F>(self, options: F) -> PerRequestLayer<F>
    where
        F: Fn(&R) -> JobOptions,
    {
        PerRequestLayer::new(self.pace.queue, options)
    }
}

impl<S> Layer<S> for IntervalLayer {
    type Service = Interval<S>;

    fn layer(&self, inner: S) -> Interval<S> {
        Interval::new(inner, self.pace.clone())
    }
}
