//! An open database, and transactions on it.

use interval_queue_contract::StateErrorKind;
use interval_queue_store::{Component, files::LockTimeout};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, config::DbConfig};

use super::{
    Durability,
    error::{Fault, code, is_busy, path_error, read_only},
    location::{Files, Location},
    schema,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// For commands that store. Creates a missing database and missing tables.
    Write,
    /// Creates nothing and waits for no writer.
    Read,
}

/// The identities of the files are as of the opening.
#[derive(Debug)]
pub(crate) struct Database {
    connection: Connection,
    files: Files,
}

impl Database {
    /// `None`: there is nothing to read.
    pub(crate) fn open(
        location: &Location,
        component: &'static Component,
        purpose: Purpose,
        timeout: &LockTimeout,
    ) -> Result<Option<Self>, Fault> {
        location.check_mount()?;
        if location.is_there()? {
            let before = location.files();
            let opened = Self::connect(location, component, purpose, timeout, OpenFlags::empty());
            // The file may have been replaced or removed during the attempt.
            return if location.still_has(&before) {
                Self::checked(opened?, &before, purpose)
            } else {
                Err(Fault::Moved)
            };
        }
        if purpose == Purpose::Read {
            return Ok(None);
        }
        let Some(making) = location.begin_to_make(timeout)? else { return Err(Fault::Moved) };
        let made = Self::connect(location, component, purpose, timeout, OpenFlags::SQLITE_OPEN_CREATE);
        match &made {
            Err(Fault::Before(error))
                if code(error) == Some(ErrorCode::SystemIoFailure) && !location.is_there()? =>
            {
                return Err(Fault::Moved);
            }
            // Another process is creating the database.
            Err(Fault::Before(error)) if is_busy(error) => {}
            Err(_) => making.undo(),
            Ok(_) => {}
        }
        Self::checked(made?, &Files::default(), purpose)
    }

    /// SQLite does not report which log it has opened, if several had the name meanwhile. So a
    /// connection that stores is opened again if another log, or none, was there before.
    fn checked(opened: Option<Self>, before: &Files, purpose: Purpose) -> Result<Option<Self>, Fault> {
        match opened {
            Some(open) if purpose == Purpose::Write && open.files != *before => {
                open.leave_the_log();
                Err(Fault::Moved)
            }
            opened => Ok(opened),
        }
    }

    fn connect(
        location: &Location,
        component: &'static Component,
        purpose: Purpose,
        timeout: &LockTimeout,
        create: OpenFlags,
    ) -> Result<Option<Self>, Fault> {
        // No URI: file names may look like one. The path is absolute, so a build that reads URIs
        // takes it literally, too.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE
            | create;
        let connection = Connection::open_with_flags(location.path(), flags)?;
        #[cfg(all(test, unix))]
        let connection = crate::tasks::interleaved::watched(connection);
        connection.busy_timeout(std::time::Duration::ZERO)?;
        connection.set_prepared_statement_cache_capacity(MAX_PREPARED_STATEMENTS);
        // Otherwise SQLite prepares statements again for each value of some parameters, such as
        // limits.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        // Without the right to write, SQLite opens the file for reading, and would leave a log next
        // to it.
        if purpose == Purpose::Write && connection.is_readonly("main")? {
            return Err(read_only(location).into());
        }
        // Must come first: tables of another owner must not be changed.
        let version = until_free(timeout, || schema::version(component, &connection, location))?;
        let is_current = version == component.known();
        match purpose {
            Purpose::Write => {
                use_write_ahead_log(&connection, location, timeout)?;
                if !is_current {
                    schema::migrate(component, &connection, location, timeout)?;
                }
            }
            Purpose::Read if version == 0 => return Ok(None),
            Purpose::Read if !is_current => {
                let what = "has older tables: the next command that stores brings them up to date";
                return Err(path_error(location, StateErrorKind::Unreachable, what).into());
            }
            Purpose::Read => {}
        }
        Ok(Some(Self { connection, files: location.files() }))
    }

    /// Fails if the file does not begin like a database, which a connection that also reads the log
    /// may not notice. Other errors prove nothing: during a checkpoint the file alone is
    /// inconsistent.
    ///
    /// Only SQLite may open the file: closing it by other means would release the locks of this
    /// process.
    pub(crate) fn check_header(location: &Location) -> Result<(), Fault> {
        let path = percent_encode(location.path().as_os_str().as_encoded_bytes(), NON_ALPHANUMERIC);
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // `immutable`: ignores the log and takes no locks.
        let connection = Connection::open_with_flags(format!("file:{path}?immutable=1"), flags)?;
        let version = connection.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0));
        match version {
            Err(error) if code(&error) == Some(ErrorCode::NotADatabase) => Err(error.into()),
            _ => Ok(()),
        }
    }

    pub(crate) fn change<T>(
        &self,
        location: &Location,
        timeout: &LockTimeout,
        work: impl Fn(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let transaction = begin(&self.connection, timeout)?;
        self.check_files(location)?;
        let done = work(&transaction)?;
        transaction.commit().map_err(Fault::Commit)?;
        Ok(done)
    }

    /// Requires that `read` does not write.
    pub(crate) fn read<T>(
        &self,
        location: &Location,
        timeout: &LockTimeout,
        read: impl Fn(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        until_free(timeout, || {
            self.check_files(location)?;
            read(&self.connection)
        })
    }

    pub(crate) fn files(&self) -> Files {
        self.files
    }

    /// The last connection writes the log into the database, unless the log was replaced.
    pub(crate) fn close(self, location: &Location) {
        if location.files().have_another_log(&self.files) {
            self.leave_the_log();
        }
    }

    pub(crate) fn leave_the_log(&self) {
        let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    }

    /// A process that keeps a deleted file open would work on data that no other process sees.
    fn check_files(&self, location: &Location) -> Result<(), Fault> {
        if self.is_at(location) { Ok(()) } else { Err(Fault::Moved) }
    }

    pub(crate) fn is_at(&self, location: &Location) -> bool {
        location.files() == self.files
    }
}

/// Readers and the writer then do not wait for each other.
fn use_write_ahead_log(
    connection: &Connection,
    location: &Location,
    timeout: &LockTimeout,
) -> Result<(), Fault> {
    let journal = until_free(timeout, || {
        let now: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        if now == "wal" {
            return Ok(now);
        }
        Ok(connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?)
    })?;
    if journal != "wal" {
        let text = format!(
            "cannot have a write-ahead log, its journal stays {journal:?}: use a local disk, Redis or a JSON file"
        );
        return Err(path_error(location, StateErrorKind::Unsupported, &text).into());
    }
    let synchronous = match location.durability() {
        Durability::Full => "FULL",
        Durability::Relaxed => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    // On macOS, flushes to the disk and not only to its cache.
    connection.pragma_update(None, "fullfsync", location.durability() == Durability::Full)?;
    // For a log that grew during a long read. SQLite resets the log every 1,000 pages.
    connection.pragma_update(None, "journal_size_limit", MAX_IDLE_LOG_BYTES)?;
    Ok(())
}

/// More than there are statements.
const MAX_PREPARED_STATEMENTS: usize = 256;

/// 1,000 pages, in bytes.
const MAX_IDLE_LOG_BYTES: i64 = 4 << 20;

/// Waits until no other process writes.
pub(crate) fn begin<'c>(connection: &'c Connection, timeout: &LockTimeout) -> Result<Transaction<'c>, Fault> {
    until_free(timeout, || Ok(Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?))
}

fn until_free<T>(timeout: &LockTimeout, attempt: impl FnMut() -> Result<T, Fault>) -> Result<T, Fault> {
    timeout.until_free(|result| matches!(result, Err(Fault::Before(error)) if is_busy(error)), attempt)
}
