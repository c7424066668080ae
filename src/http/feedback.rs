//! The layer that reads responses.

use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

use super::{FeedbackFuture, HttpResponse, Observer, ReadHead};

/// Reads the responses of a service and holds the queue, for all processes, if a response asks to
/// wait.
///
/// Responses and errors are passed on unchanged. A response that asks to wait is passed on once the
/// hold is in force, after 1 s at the latest.
///
/// Put [`IntervalLayer`](crate::tower::IntervalLayer) around this layer: with
/// [`max_running`](crate::Builder::max_running) the hold is then in force before the next request
/// starts.
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it is around a service"]
pub struct FeedbackLayer<H = HttpResponse> {
    observer: Observer,
    head: H,
}

impl FeedbackLayer {
    /// A layer for services that return [`http::Response`].
    pub fn new(observer: Observer) -> Self {
        Self { observer, head: HttpResponse }
    }

    /// For services with another response type: `head` returns its status and headers.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use interval_queue::{IntervalQueue, http::{FeedbackLayer, Observer}, tower::IntervalLayer};
    /// # use tower::ServiceBuilder;
    /// # let queue = IntervalQueue::builder("api").interval(Duration::from_millis(100)).connect("memory:").await?;
    /// let feedback = FeedbackLayer::new(Observer::new(queue.clone()))
    ///     .head(|response: &reqwest::Response| (response.status(), response.headers()));
    /// let client = ServiceBuilder::new()
    ///     .layer(IntervalLayer::new(queue))
    ///     .layer(feedback)
    ///     .service(reqwest::Client::new());
    /// # fn calls<S: tower::Service<reqwest::Request, Response = reqwest::Response>>(_: S) {}
    /// # calls(client);
    /// # Ok(())
    /// # }
    /// ```
    pub fn head<R, F>(self, head: F) -> FeedbackLayer<F>
    where
        F: Fn(&R) -> (::http::StatusCode, &::http::HeaderMap),
    {
        FeedbackLayer { observer: self.observer, head }
    }
}

impl<S, H: Clone> Layer<S> for FeedbackLayer<H> {
    type Service = Feedback<S, H>;

    fn layer(&self, inner: S) -> Feedback<S, H> {
        Feedback { inner, observer: self.observer.clone(), head: self.head.clone() }
    }
}

/// A service whose responses are read; made by [`FeedbackLayer`].
#[derive(Clone, Debug)]
pub struct Feedback<S, H = HttpResponse> {
    inner: S,
    observer: Observer,
    head: H,
}

impl<S, H, R> Service<R> for Feedback<S, H>
where
    S: Service<R>,
    H: ReadHead<S::Response> + Clone,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = FeedbackFuture<S::Future, S::Response, H>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        FeedbackFuture::new(self.inner.call(request), self.observer.clone(), self.head.clone())
    }
}
