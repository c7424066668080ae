//! The connection that is kept, and made again whenever it may not be the right one any more.

use std::sync::Arc;

use interval_queue_contract::{Command, QueueName, Reply, StateError};
use rusqlite::ErrorCode;
use tokio::runtime::Handle;

use crate::{
    database::{Database, Purpose},
    error::{Fault, code},
    patience::{Patience, is_busy},
    place::Place,
};

/// So often a command finds other files without anybody replacing them all the time: the database is made,
/// and then its log.
const SURE_MOVES: u32 = 3;

/// The connection for commands that store, of which a process uses one handle at a time.
#[derive(Debug)]
pub(crate) struct Store {
    place: Arc<Place>,
    open: Option<Database>,
}

impl Store {
    /// Checks that the database can be used, or made. The first command that stores opens it.
    pub(crate) fn prepare(place: Arc<Place>, patience: &Patience) -> Result<Self, StateError> {
        // First, since SQLite leaves a log where it may only look.
        place.check_writable()?;
        look(&place, patience, |_| Ok(()))?;
        Ok(Self { place, open: None })
    }

    /// Carries a command out.
    pub(crate) fn change(
        &mut self,
        patience: &Patience,
        queue: &QueueName,
        command: &Command,
    ) -> Result<Reply, StateError> {
        let place = self.place.clone();
        self.with(patience, |database| database.change(&place, patience, queue, command))
    }

    /// Does the work on the database that has the path now.
    fn with<T>(
        &mut self,
        patience: &Patience,
        work: impl Fn(&Database) -> Result<T, Fault>,
    ) -> Result<T, StateError> {
        let mut moves = 0;
        loop {
            let was_open = self.open.is_some();
            let fault = match self.opened(patience).and_then(&work) {
                Ok(done) => return Ok(done),
                // Whatever a file that is not there any more may say.
                Err(Fault::Before(_)) if self.open.as_ref().is_some_and(|open| !open.is_at(&self.place)) => {
                    Fault::Moved
                }
                Err(fault) => fault,
            };
            let again = match &fault {
                Fault::Moved => {
                    // As long as the files of before are open it can be known.
                    self.place.check_not_mixed()?;
                    moves += 1;
                    moves < SURE_MOVES || !patience.is_over()
                }
                // A table may be gone or changed: opening tells.
                Fault::Before(error) => was_open && code(error) == Some(ErrorCode::Unknown),
                Fault::Refused(_) | Fault::Commit(_) => false,
            };
            // After any other failure the next command begins with a connection that has seen none.
            match &fault {
                Fault::Refused(_) => {}
                Fault::Before(error) | Fault::Commit(error) if is_busy(error) => {}
                _ => self.close(),
            }
            if !again {
                return Err(fault.tell(&self.place));
            }
        }
    }

    fn opened(&mut self, patience: &Patience) -> Result<&Database, Fault> {
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                let open = Database::open(&self.place, Purpose::Change, patience)?.ok_or(Fault::Moved)?;
                self.place.remember(Some(open.files()));
                open
            }
        };
        Ok(self.open.insert(open))
    }

    fn close(&mut self) {
        self.place.remember(None);
        if let Some(open) = self.open.take() {
            open.close(&self.place);
        }
    }
}

/// The last one who closes a database writes the log into it, which may take a while.
impl Drop for Store {
    fn drop(&mut self) {
        let Some(open) = self.open.take() else { return };
        let place = self.place.clone();
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || open.close(&place))),
            Err(_) => open.close(&place),
        }
    }
}

/// Looks at the database that has the path now. None: there is nothing to look at.
///
/// By a connection of its own, since who looks must not wait for those who wait to write; and not a kept one,
/// which would keep files that were deleted alive for as long as nobody looks.
pub(crate) fn look<T>(
    place: &Place,
    patience: &Patience,
    look: impl Fn(&Database) -> Result<T, Fault>,
) -> Result<Option<T>, StateError> {
    loop {
        place.check_not_mixed()?;
        let open = Database::open(place, Purpose::Look, patience);
        match open.and_then(|open| open.as_ref().map(&look).transpose()) {
            Err(Fault::Moved) if !patience.is_over() => {}
            result => return result.map_err(|fault| fault.tell(place)),
        }
    }
}
