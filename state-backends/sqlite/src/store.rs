//! The connection that is kept, and made anew whenever it may not be the right one any more.

use std::sync::Arc;

use interval_queue_contract::{Command, QueueName, Reply, StateError, StateErrorKind, rules};
use rusqlite::ErrorCode;
use tokio::runtime::Handle;

use crate::{
    clock,
    database::{Database, Purpose},
    error::{Fault, code, told},
    patience::{Patience, is_busy},
    place::Place,
};

/// A connection of which a process uses one handle at a time.
#[derive(Debug)]
pub(crate) struct Store {
    place: Arc<Place>,
    purpose: Purpose,
    open: Option<Database>,
}

impl Store {
    /// Opens nothing yet.
    pub(crate) fn new(place: Arc<Place>, purpose: Purpose) -> Self {
        Self { place, purpose, open: None }
    }

    /// Opens the database, and makes it if it is not there.
    pub(crate) fn open(&mut self, patience: &Patience) -> Result<(), StateError> {
        self.with(patience, |_| Ok(())).map(drop)
    }

    /// Carries a command out.
    pub(crate) fn apply(
        &mut self,
        patience: &Patience,
        queue: &QueueName,
        command: &Command,
    ) -> Result<Reply, StateError> {
        let (place, purpose) = (self.place.clone(), self.purpose);
        let reply = self.with(patience, |database| match purpose {
            Purpose::Change => database.change(&place, patience, queue, command),
            Purpose::Look => database.look(&place, patience, queue, command),
        })?;
        reply.map_or_else(|| rules::apply(&mut None, &clock::host(), command), Ok)
    }

    /// The names of the queues, sorted.
    pub(crate) fn queues(&mut self, patience: &Patience) -> Result<Vec<QueueName>, StateError> {
        let place = self.place.clone();
        Ok(self.with(patience, |database| database.queues(&place, patience))?.unwrap_or_default())
    }

    /// Does the work on the database that has the path now. None: there is nothing to look at.
    fn with<T>(
        &mut self,
        patience: &Patience,
        work: impl Fn(&Database) -> Result<T, Fault>,
    ) -> Result<Option<T>, StateError> {
        loop {
            let was_open = self.open.is_some();
            let fault = match self.opened(patience).and_then(|open| open.map(&work).transpose()) {
                Ok(done) => return Ok(done),
                Err(fault) => fault,
            };
            let again = match &fault {
                Fault::Moved => {
                    self.check_what_is_left()?;
                    !patience.is_over()
                }
                // A table may be gone or changed: opening tells.
                Fault::Before(error) => was_open && code(error) == Some(ErrorCode::Unknown),
                Fault::Refused(_) | Fault::Commit(_) => false,
            };
            // After any other failure the next command begins with a connection that has seen none.
            match &fault {
                Fault::Refused(_) => {}
                Fault::Before(error) | Fault::Commit(error) if is_busy(error) => {}
                _ => self.open = None,
            }
            if !again {
                return Err(fault.tell(&self.place));
            }
        }
    }

    fn opened(&mut self, patience: &Patience) -> Result<Option<&Database>, Fault> {
        if self.open.is_none() {
            self.open = Database::open(&self.place, self.purpose, patience)?;
        }
        Ok(self.open.as_ref())
    }

    /// Another database with the log of the one before would be read as a mixture of both. Which is refused for as long as it
    /// can be known.
    fn check_what_is_left(&self) -> Result<(), StateError> {
        let Some(open) = &self.open else { return Ok(()) };
        if open.files.are_mixed_with(&self.place.files()) {
            let what = "is another file than before, and the -wal and -shm beside it belong to the one before: remove these \
                two, then put the file there again";
            return Err(told(&self.place, StateErrorKind::Damaged, what));
        }
        Ok(())
    }
}

/// The last one who closes a database writes the log into it, which may take a while.
impl Drop for Store {
    fn drop(&mut self) {
        if let (Some(open), Ok(runtime)) = (self.open.take(), Handle::try_current()) {
            runtime.spawn_blocking(|| drop(open));
        }
    }
}
