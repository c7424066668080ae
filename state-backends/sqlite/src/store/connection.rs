//! Kept connections, reopened whenever the files of the database may have been replaced.

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

/// A command may find other files without any replacement by a third party: the database is
/// created, and then its log.
const MAX_EXPECTED_MOVES: u32 = 3;

/// Fails if the file was overwritten. A kept connection does not notice, since it caches the pages
/// until another process writes to the log. The check rarely runs, since the file is written only
/// at a checkpoint.
fn check_content(
    kept: &Database,
    location: &Location,
    component: &'static Component,
    timeout: &LockTimeout,
) -> Result<(), Fault> {
    let Some(written) = location.unchecked().filter(|_| kept.is_at(location)) else { return Ok(()) };
    let open = || Database::open(location, component, Purpose::Read, timeout);
    match Database::check_header(location).and_then(|()| open()) {
        Ok(open) => {
            location.set_checked(written);
            open.into_iter().for_each(|open| open.close(location));
        }
        Err(Fault::Before(error)) if is_unreadable(&error) => {
            // The log belongs to the overwritten file.
            kept.leave_the_log();
            return Err(Fault::Before(error));
        }
        // The command itself reports other errors.
        Err(_) => {}
    }
    Ok(())
}

fn is_unreadable(error: &rusqlite::Error) -> bool {
    matches!(code(error), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
}

/// One command of a process uses the connection at a time.
#[derive(Debug)]
pub(crate) struct WriteConnection {
    location: Arc<Location>,
    open: Option<Database>,
}

impl WriteConnection {
    pub(crate) fn new(location: Arc<Location>) -> Self {
        Self { location, open: None }
    }

    /// Runs `work` in a transaction on the database that currently has the path.
    pub(crate) fn change<T>(
        &mut self,
        component: &'static Component,
        timeout: &LockTimeout,
        work: impl Fn(&Connection) -> Result<T, Fault>,
    ) -> Result<T, StateError> {
        let location = self.location.clone();
        let mut moves = 0;
        loop {
            let was_open = self.open.is_some();
            let checked =
                self.open.as_ref().map_or(Ok(()), |open| check_content(open, &location, component, timeout));
            let open = checked.and_then(|()| self.opened(component, timeout));
            let fault = match open.and_then(|open| open.change(&location, timeout, &work)) {
                Ok(done) => return Ok(done),
                // The file is no longer there: its errors do not matter.
                Err(Fault::Before(_))
                    if self.open.as_ref().is_some_and(|open| !open.is_at(&self.location)) =>
                {
                    Fault::Moved
                }
                Err(fault) => fault,
            };
            let again = match &fault {
                Fault::Moved => {
                    // Can be detected only while the old files are open.
                    self.location.check_not_mixed()?;
                    moves += 1;
                    moves < MAX_EXPECTED_MOVES || !timeout.is_over()
                }
                // A table may be missing or changed, which reopening reports or corrects.
                Fault::Before(error) => was_open && code(error) == Some(ErrorCode::Unknown),
                Fault::Refused(_) | Fault::Commit(_) => false,
            };
            match &fault {
                Fault::Refused(_) => {}
                Fault::Before(error) | Fault::Commit(error) if is_busy(error) => {}
                _ => self.close(),
            }
            if !again {
                return Err(fault.into_error(&self.location));
            }
        }
    }

    fn opened(&mut self, component: &'static Component, timeout: &LockTimeout) -> Result<&Database, Fault> {
        if self.open.is_none() {
            self.open = Database::open(&self.location, component, Purpose::Write, timeout)?;
            self.location.remember(self.open.as_ref().map(Database::files));
        }
        self.open.as_ref().ok_or(Fault::Moved)
    }

    /// The next command opens the connection again.
    pub(crate) fn close(&mut self) {
        self.location.remember(None);
        if let Some(open) = self.open.take() {
            open.close(&self.location);
        }
    }
}

/// The last connection to close writes the log into the database, which takes time.
impl Drop for WriteConnection {
    fn drop(&mut self) {
        let Some(open) = self.open.take() else { return };
        let location = self.location.clone();
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || open.close(&location))),
            Err(_) => open.close(&location),
        }
    }
}

/// `None`: there is no database, or it has no tables of the component.
///
/// Opens a new connection: readers must not wait for writers, and a kept connection would keep
/// deleted files alive until the next read.
pub(crate) fn read<T>(
    location: &Location,
    component: &'static Component,
    timeout: &LockTimeout,
    read: impl Fn(&Connection) -> Result<T, Fault>,
) -> Result<Option<T>, StateError> {
    loop {
        location.check_not_mixed()?;
        let open = Database::open(location, component, Purpose::Read, timeout);
        let read_open =
            |open: Option<Database>| open.map(|open| open.read(location, timeout, &read)).transpose();
        match open.and_then(read_open) {
            Err(Fault::Moved) if !timeout.is_over() => {}
            result => return result.map_err(|fault| fault.into_error(location)),
        }
    }
}

/// Kept connections for frequent reads.
#[derive(Debug)]
pub(crate) struct ReadPool {
    location: Arc<Location>,
    idle: Mutex<Vec<Database>>,
    /// Shared by running reads, exclusive to [`close`](Self::close).
    under_way: RwLock<()>,
    /// The store was closed, and no command has reopened it since.
    is_closed: AtomicBool,
}

impl ReadPool {
    pub(crate) fn new(location: Arc<Location>) -> Self {
        Self { location, idle: Mutex::default(), under_way: RwLock::default(), is_closed: false.into() }
    }

    /// Required of commands that reopen the store.
    pub(crate) fn opened(&self) {
        self.is_closed.store(false, Ordering::Release);
    }

    /// `None`: there is no database, or it has no tables of the component. If the tables have
    /// another version, `work` must return [`Moved`](Fault::Moved).
    pub(crate) fn read<T>(
        &self,
        component: &'static Component,
        timeout: &LockTimeout,
        work: impl Fn(&Connection) -> Result<T, Fault>,
    ) -> Result<Option<T>, StateError> {
        let _under_way = self.under_way.read().unwrap_or_else(PoisonError::into_inner);
        self.opened();
        self.read_on(component, timeout, work)
    }

    /// `None`: the store is closed.
    pub(crate) fn read_unless_closed<T>(
        &self,
        component: &'static Component,
        timeout: &LockTimeout,
        work: impl Fn(&Connection) -> Result<T, Fault>,
    ) -> Result<Option<Option<T>>, StateError> {
        let _under_way = self.under_way.read().unwrap_or_else(PoisonError::into_inner);
        if self.is_closed.load(Ordering::Acquire) {
            return Ok(None);
        }
        self.read_on(component, timeout, work).map(Some)
    }

    fn read_on<T>(
        &self,
        component: &'static Component,
        timeout: &LockTimeout,
        work: impl Fn(&Connection) -> Result<T, Fault>,
    ) -> Result<Option<T>, StateError> {
        let location = &self.location;
        loop {
            location.check_not_mixed()?;
            let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let was_kept = kept.is_some();
            let opened = match kept {
                Some(open) => check_content(&open, location, component, timeout).map(|()| Some(open)),
                None => Database::open(location, component, Purpose::Read, timeout),
            };
            let fault = match opened {
                Ok(None) => return Ok(None),
                Ok(Some(open)) => match open.read(location, timeout, &work) {
                    Ok(result) => {
                        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(open);
                        return Ok(Some(result));
                    }
                    Err(fault) => {
                        open.close(location);
                        fault
                    }
                },
                Err(fault) => fault,
            };
            match fault {
                // A new connection sees the current files.
                Fault::Moved | Fault::Before(_) if was_kept => {}
                Fault::Moved if !timeout.is_over() => {}
                fault => return Err(fault.into_error(location)),
            }
        }
    }

    /// Waits for running reads. The next read opens a connection again.
    pub(crate) fn close(&self) {
        let _exclusive = self.under_way.write().unwrap_or_else(PoisonError::into_inner);
        self.is_closed.store(true, Ordering::Release);
        for open in self.idle.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            open.close(&self.location);
        }
    }
}
