//! The ticket of a job, shared by all holders of its handle.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use interval_queue_contract::Ticket;
use tokio::sync::Notify;

use crate::{error::Error, until::until};

/// The ticket of a job, or the reason why it gets none.
#[derive(Default)]
pub(crate) struct Taken {
    told: OnceLock<Result<Ticket, Box<Error>>>,
    woken: Notify,
}

impl Taken {
    pub(crate) fn is_told(&self) -> bool {
        self.told.get().is_some()
    }

    /// Completes once the result is set.
    pub(crate) async fn told(&self) {
        until(&self.woken, || self.is_told()).await;
    }

    /// Waits for the result.
    pub(crate) async fn wait(&self) -> Result<Ticket, Error> {
        self.told().await;
        match self.told.get() {
            Some(Ok(ticket)) => Ok(*ticket),
            Some(Err(error)) => Err(error.again()),
            None => Err(Error::cancelled()),
        }
    }

    /// The error, if the job is known to get no ticket.
    pub(crate) fn refused(&self) -> Option<Error> {
        self.told.get()?.as_ref().err().map(|error| error.again())
    }
}

impl fmt::Debug for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Taken").field(&self.told.get()).finish()
    }
}

/// Sets the result. Dropping it without a result cancels the job's ticket. The drop wakes tasks, so
/// never drop it under the line's lock.
pub(crate) struct Caller(Arc<Taken>);

impl Caller {
    pub(crate) fn new() -> (Self, Arc<Taken>) {
        let taken = Arc::<Taken>::default();
        (Self(taken.clone()), taken)
    }

    pub(crate) fn tell(self, ticket: Result<Ticket, Error>) {
        // Cannot be set before: only this value sets it.
        let _ = self.0.told.set(ticket.map_err(Box::new));
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let _ = self.0.told.set(Err(Error::cancelled().into()));
        self.0.woken.notify_waiters();
    }
}
