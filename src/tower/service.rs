//! The service that is ready when its slot has come.

use std::{
    fmt,
    task::{Context, Poll, ready},
};

use tower_service::Service;

use super::{
    BoxError, ResponseFuture,
    slot::{Pace, Slot},
};

/// A service whose calls are paced; made by [`IntervalLayer`](super::IntervalLayer).
///
/// A clone enters the queue when it is first polled.
///
/// # Cancel safety
///
/// Dropping the service, ready or not, leaves the queue. Dropping the response future ends the
/// call.
pub struct Interval<S> {
    inner: S,
    pace: Pace,
    slot: Slot,
}

impl<S> Interval<S> {
    pub(super) fn new(inner: S, pace: Pace) -> Self {
        Self { inner, pace, slot: Slot::default() }
    }

    /// The inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service, mutably.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The inner service alone; leaves the queue.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, R> Service<R> for Interval<S>
where
    S: Service<R> + Clone,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S, R>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // Polled each time: the inner service may fail or reconnect while the slot is pending.
        if let Err(error) = ready!(self.inner.poll_ready(context)) {
            self.slot = Slot::default();
            return Poll::Ready(Err(error.into()));
        }
        self.slot.poll_come(&self.pace, context).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        match self.slot.take(&self.pace) {
            Ok(Some(turn)) => ResponseFuture::running(self.inner.call(request), turn),
            Ok(None) => ResponseFuture::waiting(self.pace.turn(), &mut self.inner, request),
            Err(error) => ResponseFuture::failed(error),
        }
    }
}

impl<S: Clone> Clone for Interval<S> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.pace.clone())
    }
}

impl<S: fmt::Debug> fmt::Debug for Interval<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interval")
            .field("inner", &self.inner)
            .field("pace", &self.pace)
            .finish_non_exhaustive()
    }
}
