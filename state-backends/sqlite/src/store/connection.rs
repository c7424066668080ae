//! The connection that is kept, and made again whenever it may not be the right one any more.

use std::sync::{
    Arc, Mutex, PoisonError, RwLock,
    atomic::{AtomicBool, Ordering},
};

use interval_queue_contract::StateError;
use interval_queue_store::{Component, files::LockTimeout};
use rusqlite::{Connection, ErrorCode};
use tokio::runtime::Handle;

use super::{
    database::{Database, Purpose},
    error::{Fault, code, is_busy},
    location::Location,
};

/// So often a command finds other files without anybody replacing them all the time: the database is made,
/// and then its log.
const SURE_MOVES: u32 = 3;

/// Fails if the file of a kept connection was overwritten. The connection itself does not notice that: it has the pages in
/// memory until another process writes to the log. The check is rare, since the file is written only at a checkpoint.
fn check_content(
    kept: &Database,
    location: &Location,
    component: &'static Component,
    patience: &LockTimeout,
) -> Result<(), Fault> {
    let Some(written) = location.unchecked().filter(|_| kept.is_at(location)) else { return Ok(()) };
    let open = || Database::open(location, component, Purpose::Look, patience);
    match Database::check_header(location).and_then(|()| open()) {
        Ok(open) => {
            location.set_checked(written);
            open.into_iter().for_each(|open| open.close(location));
        }
        Err(Fault::Before(error)) if is_unreadable(&error) => {
            // The log belongs to the file that was overwritten.
            kept.leave_the_log();
            return Err(Fault::Before(error));
        }
        // The command itself finds out what is there instead.
        Err(_) => {}
    }
    Ok(())
}

fn is_unreadable(error: &rusqlite::Error) -> bool {
    matches!(code(error), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
}

/// The connection for commands that store, of which a process uses one handle at a time.
#[derive(Debug)]
pub(crate) struct Kept {
    location: Arc<Location>,
    open: Option<Database>,
}

impl Kept {
    /// The first command that stores opens it.
    pub(crate) fn new(location: Arc<Location>) -> Self {
        Self { location, open: None }
    }

    /// Does the work in a transaction on the database that has the path now.
    pub(crate) fn change<T>(
        &mut self,
        component: &'static Component,
        patience: &LockTimeout,
        work: impl Fn(&Connection) -> Result<T, Fault>,
    ) -> Result<T, StateError> {
        let location = self.location.clone();
        let mut moves = 0;
        loop {
            let was_open = self.open.is_some();
            let checked =
                self.open.as_ref().map_or(Ok(()), |open| check_content(open, &location, component, patience));
            let open = checked.and_then(|()| self.opened(component, patience));
            let fault = match open.and_then(|open| open.change(&location, patience, &work)) {
                Ok(done) => return Ok(done),
                // Whatever a file that is not there any more may say.
                Err(Fault::Before(_))
                    if self.open.as_ref().is_some_and(|open| !open.is_at(&self.location)) =>
                {
                    Fault::Moved
                }
                Err(fault) => fault,
            };
            let again = match &fault {
                Fault::Moved => {
                    // As long as the files of before are open it can be known.
                    self.location.check_not_mixed()?;
                    moves += 1;
                    moves < SURE_MOVES || !patience.is_over()
                }
                // A table may be gone, changed or not made yet: opening tells, and makes it.
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
                return Err(fault.tell(&self.location));
            }
        }
    }

    fn opened(&mut self, component: &'static Component, patience: &LockTimeout) -> Result<&Database, Fault> {
        if self.open.is_none() {
            self.open = Database::open(&self.location, component, Purpose::Change, patience)?;
            self.location.remember(self.open.as_ref().map(Database::files));
        }
        self.open.as_ref().ok_or(Fault::Moved)
    }

    /// Closes the connection, if it is open. The next command opens it again.
    pub(crate) fn close(&mut self) {
        self.location.remember(None);
        if let Some(open) = self.open.take() {
            open.close(&self.location);
        }
    }
}

/// The last one who closes a database writes the log into it, which may take a while.
impl Drop for Kept {
    fn drop(&mut self) {
        let Some(open) = self.open.take() else { return };
        let location = self.location.clone();
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || open.close(&location))),
            Err(_) => open.close(&location),
        }
    }
}

/// Looks at the database that has the path now. None: there is nothing to look at.
///
/// By a connection of its own, since who looks must not wait for those who wait to write; and not a kept one,
/// which would keep files that were deleted alive for as long as nobody looks.
pub(crate) fn look<T>(
    location: &Location,
    component: &'static Component,
    patience: &LockTimeout,
    look: impl Fn(&Connection) -> Result<T, Fault>,
) -> Result<Option<T>, StateError> {
    loop {
        location.check_not_mixed()?;
        let open = Database::open(location, component, Purpose::Look, patience);
        let looked =
            |open: Option<Database>| open.map(|open| open.look(location, patience, &look)).transpose();
        match open.and_then(looked) {
            Err(Fault::Moved) if !patience.is_over() => {}
            result => return result.map_err(|fault| fault.tell(location)),
        }
    }
}

/// Connections for looks that are kept, for those who look often.
#[derive(Debug)]
pub(crate) struct Looking {
    location: Arc<Location>,
    idle: Mutex<Vec<Database>>,
    /// Shared by looks under way, exclusive to [`close`](Self::close).
    under_way: RwLock<()>,
    /// Whether it was closed and no command has come since.
    is_closed: AtomicBool,
}

impl Looking {
    pub(crate) fn new(location: Arc<Location>) -> Self {
        Self { location, idle: Mutex::default(), under_way: RwLock::default(), is_closed: false.into() }
    }

    /// After a command that has opened the store again.
    pub(crate) fn opened(&self) {
        self.is_closed.store(false, Ordering::Release);
    }

    /// Looks at the database that has the path now. None: there is nothing to look at. What finds tables of another
    /// version says that they have [`Moved`](Fault::Moved).
    pub(crate) fn look<T>(
        &self,
        component: &'static Component,
        patience: &LockTimeout,
        work: impl Fn(&Connection) -> Result<T, Fault>,
    ) -> Result<Option<T>, StateError> {
        let _under_way = self.under_way.read().unwrap_or_else(PoisonError::into_inner);
        self.opened();
        self.look_on(component, patience, work)
    }

    /// Looks as [`look`](Self::look) does, unless the store is closed. None: it is.
    pub(crate) fn look_unless_closed<T>(
        &self,
        component: &'static Component,
        patience: &LockTimeout,
        work: impl Fn(&Connection) -> Result<T, Fault>,
    ) -> Result<Option<Option<T>>, StateError> {
        let _under_way = self.under_way.read().unwrap_or_else(PoisonError::into_inner);
        if self.is_closed.load(Ordering::Acquire) {
            return Ok(None);
        }
        self.look_on(component, patience, work).map(Some)
    }

    fn look_on<T>(
        &self,
        component: &'static Component,
        patience: &LockTimeout,
        work: impl Fn(&Connection) -> Result<T, Fault>,
    ) -> Result<Option<T>, StateError> {
        let location = &self.location;
        loop {
            location.check_not_mixed()?;
            let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let was_kept = kept.is_some();
            let opened = match kept {
                Some(open) => check_content(&open, location, component, patience).map(|()| Some(open)),
                None => Database::open(location, component, Purpose::Look, patience),
            };
            let fault = match opened {
                Ok(None) => return Ok(None),
                Ok(Some(open)) => match open.look(location, patience, &work) {
                    Ok(seen) => {
                        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(open);
                        return Ok(Some(seen));
                    }
                    Err(fault) => {
                        open.close(location);
                        fault
                    }
                },
                Err(fault) => fault,
            };
            match fault {
                // One that is opened now sees what is there now.
                Fault::Moved | Fault::Before(_) if was_kept => {}
                Fault::Moved if !patience.is_over() => {}
                fault => return Err(fault.tell(location)),
            }
        }
    }

    /// Closes the connections once no look is under way. The next look opens one again.
    pub(crate) fn close(&self) {
        let _alone = self.under_way.write().unwrap_or_else(PoisonError::into_inner);
        self.is_closed.store(true, Ordering::Release);
        for open in self.idle.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            open.close(&self.location);
        }
    }
}
