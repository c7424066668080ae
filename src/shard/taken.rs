//! A job's ticket, shared by its handles.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use interval_queue_contract::Ticket;
use tokio::sync::Notify;

use crate::{error::Error, until::until};

#[derive(Default)]
pub(crate) struct Taken {
    result: OnceLock<Result<Ticket, Box<Error>>>,
    woken: Notify,
}

impl Taken {
    pub(crate) fn is_known(&self) -> bool {
        self.result.get().is_some()
    }

    pub(crate) async fn known(&self) {
        until(&self.woken, || self.is_known()).await;
    }

    pub(crate) async fn wait(&self) -> Result<Ticket, Error> {
        self.known().await;
        match self.result.get() {
            Some(Ok(ticket)) => Ok(*ticket),
            Some(Err(error)) => Err(error.again()),
            None => Err(Error::cancelled()),
        }
    }

    /// If it is known that the job gets no ticket.
    pub(crate) fn refused(&self) -> Option<Error> {
        self.result.get()?.as_ref().err().map(|error| error.again())
    }
}

impl fmt::Debug for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Taken").field(&self.result.get()).finish()
    }
}

/// Sets the result once; `Cancelled` if dropped without one. The drop wakes tasks: never under the
/// line's lock.
pub(crate) struct Caller(Arc<Taken>);

impl Caller {
    pub(crate) fn new() -> (Self, Arc<Taken>) {
        let taken = Arc::<Taken>::default();
        (Self(taken.clone()), taken)
    }

    pub(crate) fn notify(self, ticket: Result<Ticket, Error>) {
        let _ = self.0.result.set(ticket.map_err(Box::new));
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let _ = self.0.result.set(Err(Error::cancelled().into()));
        self.0.woken.notify_waiters();
    }
}
