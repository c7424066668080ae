//! A span with its subscriber.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Poll, ready},
};

use tracing::{Id, Span, dispatcher};

/// A span that is entered and closed under its own subscriber: a job may run on another thread than
/// it was added on, and a registry panics if its span is closed under another subscriber, which
/// `Instrument` does not prevent.
#[derive(Clone, Debug)]
pub(crate) struct Scope(Span);

pub(super) static NONE: Scope = Scope::none();

impl Scope {
    pub(super) const fn none() -> Self {
        Self(Span::none())
    }

    pub(crate) fn current() -> Self {
        Self(Span::current())
    }

    /// A root span if this one is empty.
    pub(super) fn child(&self, make: impl FnOnce(Option<Id>) -> Span) -> Self {
        Self(self.at_home(|| make(self.0.id())))
    }

    pub(super) fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        self.at_home(|| self.0.in_scope(work))
    }

    /// Drops the job within the span, on completion.
    pub(crate) async fn run_to_end<F: Future>(&self, mut job: Pin<&mut Option<F>>) -> F::Output {
        poll_fn(|context| {
            self.run(|| {
                let Some(running) = job.as_mut().as_pin_mut() else { return Poll::Pending };
                let output = ready!(running.poll(context));
                job.set(None);
                Poll::Ready(output)
            })
        })
        .await
    }

    fn at_home<T>(&self, work: impl FnOnce() -> T) -> T {
        match self.0.with_subscriber(|(_, dispatch)| dispatch.clone()) {
            Some(dispatch) => dispatcher::with_default(&dispatch, work),
            None => work(),
        }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        // May close the span and its parent, which needs the subscriber.
        let mut span = std::mem::replace(&mut self.0, Span::none());
        if let Some(dispatch) = span.with_subscriber(|(_, dispatch)| dispatch.clone()) {
            dispatcher::with_default(&dispatch, || span = Span::none());
        }
    }
}
