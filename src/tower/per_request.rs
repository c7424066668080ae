//! The layer whose job options depend on the request.

use std::{
    fmt,
    task::{Context, Poll},
};

use tower_layer::Layer;
use tower_service::Service;

use super::{BoxError, ResponseFuture, slot::Pace};
use crate::{IntervalQueue, JobOptions};

/// Paces the calls of a service, each with its own options; made by
/// [`IntervalLayer::options_for`](super::IntervalLayer::options_for).
#[derive(Clone)]
#[must_use = "a layer does nothing until it is around a service"]
pub struct PerRequestLayer<F> {
    queue: IntervalQueue,
    options: F,
}

impl<F> PerRequestLayer<F> {
    pub(super) fn new(queue: IntervalQueue, options: F) -> Self {
        Self { queue, options }
    }
}

impl<S, F: Clone> Layer<S> for PerRequestLayer<F> {
    type Service = PerRequest<S, F>;

    fn layer(&self, inner: S) -> PerRequest<S, F> {
        PerRequest { inner, layer: self.clone() }
    }
}

impl<F> fmt::Debug for PerRequestLayer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerRequestLayer").field("queue", &self.queue).finish_non_exhaustive()
    }
}

/// A paced service with options for each call. It is ready when the inner service is. The response
/// future enters the queue when it is first polled and leaves it when dropped.
#[derive(Clone, Debug)]
pub struct PerRequest<S, F> {
    inner: S,
    layer: PerRequestLayer<F>,
}

impl<S, F, R> Service<R> for PerRequest<S, F>
where
    S: Service<R> + Clone,
    S::Error: Into<BoxError>,
    F: Fn(&R) -> JobOptions,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S, R>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let pace = Pace { queue: self.layer.queue.clone(), options: (self.layer.options)(&request) };
        ResponseFuture::waiting(pace.turn(), &mut self.inner, request)
    }
}
