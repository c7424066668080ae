//! The response future of [`Feedback`](super::Feedback).

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::{FutureExt, future::BoxFuture};

use super::{Observer, ReadHead};

/// The response of a [`Feedback`](super::Feedback) service.
///
/// # Panics
///
/// If polled after completion.
///
/// # Cancel safety
///
/// Dropping it before the response has come ends the request. A requested hold takes effect even if
/// the future is dropped.
#[must_use = "futures do nothing unless polled"]
pub struct FeedbackFuture<F, R, H> {
    state: State<F, R>,
    observer: Observer,
    head: H,
}

enum State<F, R> {
    Calling(Pin<Box<F>>),
    Holding(BoxFuture<'static, ()>, Option<R>),
    Done,
}

/// The inner future is boxed; nothing else is pinned.
impl<F, R, H> Unpin for FeedbackFuture<F, R, H> {}

impl<F, R, H> FeedbackFuture<F, R, H> {
    pub(super) fn new(response: F, observer: Observer, head: H) -> Self {
        Self { state: State::Calling(Box::pin(response)), observer, head }
    }
}

impl<F, R, E, H> Future for FeedbackFuture<F, R, H>
where
    F: Future<Output = Result<R, E>>,
    H: ReadHead<R>,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if let State::Calling(response) = &mut self.state {
            let outcome = ready!(response.as_mut().poll(context));
            self.state = State::Done;
            let response = outcome?;
            let (status, headers) = self.head.head(&response);
            let Some(asked) = self.observer.read(status, headers) else { return Poll::Ready(Ok(response)) };
            self.state = State::Holding(self.observer.hold(asked), Some(response));
        }
        if let State::Holding(hold, response) = &mut self.state {
            ready!(hold.poll_unpin(context));
            if let Some(response) = response.take() {
                self.state = State::Done;
                return Poll::Ready(Ok(response));
            }
        }
        panic!("the response was polled after it was done")
    }
}

impl<F, R, H> fmt::Debug for FeedbackFuture<F, R, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Calling(_) => "calling",
            State::Holding(..) => "holding",
            State::Done => "done",
        };
        f.debug_struct("FeedbackFuture").field("state", &state).finish_non_exhaustive()
    }
}
