//! The response future of a paced service.

use std::{
    fmt,
    future::{self, Future},
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::FutureExt;
use tower_service::Service;

use super::{BoxError, slot::Coming};
use crate::{Error, Turn};

/// The response of a paced service. The request counts as a running job until it completes.
///
/// # Errors
///
/// The error of the inner service, or an [`Error`](crate::Error) of the queue if no slot came.
///
/// # Panics
///
/// If polled after completion.
///
/// # Cancel safety
///
/// Dropping it ends the call or gives up its position in the queue.
#[must_use = "futures do nothing unless polled"]
pub struct ResponseFuture<S: Service<R>, R> {
    state: State<S, R>,
}

enum State<S: Service<R>, R> {
    Waiting {
        turn: Coming,
        call: Option<(S, R)>,
    },
    /// Dropped in this order: the call ends before its turn lets another job run.
    Running {
        response: Pin<Box<S::Future>>,
        _turn: Turn,
    },
    Done,
}

/// The inner future is boxed; nothing else is pinned.
impl<S: Service<R>, R> Unpin for ResponseFuture<S, R> {}

impl<S: Service<R>, R> ResponseFuture<S, R> {
    pub(super) fn running(response: S::Future, turn: Turn) -> Self {
        Self { state: State::Running { response: Box::pin(response), _turn: turn } }
    }

    pub(super) fn failed(error: Error) -> Self {
        Self { state: State::Waiting { turn: future::ready(Err(error)).boxed(), call: None } }
    }

    pub(super) fn waiting(turn: Coming, inner: &mut S, request: R) -> Self
    where
        S: Clone,
    {
        // The service is ready; its clone need not be.
        let next = inner.clone();
        let call = Some((std::mem::replace(inner, next), request));
        Self { state: State::Waiting { turn, call } }
    }
}

impl<S, R> Future for ResponseFuture<S, R>
where
    S: Service<R>,
    S::Error: Into<BoxError>,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let outcome = match &mut self.state {
                State::Waiting { turn, call } => match (ready!(turn.poll_unpin(context)), call.take()) {
                    (Ok(turn), Some((mut inner, request))) => {
                        *self = Self::running(inner.call(request), turn);
                        continue;
                    }
                    (Err(error), _) => Err(error.into()),
                    (Ok(_), None) => unreachable!("the call is there until the turn has come"),
                },
                State::Running { response, .. } => {
                    ready!(response.as_mut().poll(context)).map_err(Into::into)
                }
                State::Done => panic!("the response was polled after it was done"),
            };
            // Now, not when the caller drops the future.
            self.state = State::Done;
            return Poll::Ready(outcome);
        }
    }
}

impl<S: Service<R>, R> fmt::Debug for ResponseFuture<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Waiting { .. } => "waiting",
            State::Running { .. } => "running",
            State::Done => "done",
        };
        f.debug_struct("ResponseFuture").field("state", &state).finish_non_exhaustive()
    }
}
