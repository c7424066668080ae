//! What makes a service wait for slots.

use tower_layer::Layer;

use super::{Interval, PerRequestLayer, slot::Pace};
use crate::{IntervalQueue, JobOptions};

/// Paces the calls of a service: each takes a slot of the queue.
///
/// Services made of clones of a layer, also by other processes, share the pace. The module's
/// [documentation](super) tells what becomes of readiness, errors and calls that come late.
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it is around a service"]
pub struct IntervalLayer {
    pace: Pace,
}

impl IntervalLayer {
    /// A layer whose calls are ordinary jobs of that queue.
    pub fn new(queue: IntervalQueue) -> Self {
        Self { pace: Pace { queue, options: JobOptions::new() } }
    }

    /// What each call is as a job. Default [`JobOptions::new`]. Options that cannot be used are the error of
    /// each call.
    pub fn options(mut self, options: JobOptions) -> Self {
        self.pace.options = options;
        self
    }

    /// Asks for each request what it is as a job: the weight of a call that costs more than another, say.
    ///
    /// The place in the queue is then taken by the response future when it is first polled, since
    /// `poll_ready` comes before the request. So the queue gives no back-pressure: any number of requests can
    /// wait in their futures, each with what the inner service has reserved for it. Bound them by a
    /// `ConcurrencyLimit` above this layer, and shed or time out there.
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
