//! The open database: how it is opened, and one transaction on it.

use interval_queue_contract::StateErrorKind;
use interval_queue_store::{Component, files::LockTimeout};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, config::DbConfig};

use super::{
    Durability,
    error::{Fault, code, is_busy, read_only, told},
    location::{Files, Location},
    schema,
};

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Commands that store. It makes what is missing.
    Change,
    /// Looks. It makes nothing and waits for nobody who writes.
    Look,
}

/// A connection, and the files that had the names when it was made.
#[derive(Debug)]
pub(crate) struct Database {
    connection: Connection,
    files: Files,
}

impl Database {
    /// None: there is nothing to look at.
    pub(crate) fn open(
        location: &Location,
        component: &'static Component,
        purpose: Purpose,
        patience: &LockTimeout,
    ) -> Result<Option<Self>, Fault> {
        location.check_mount()?;
        if location.is_there()? {
            let before = location.files();
            let opened = Self::connect(location, component, purpose, patience, OpenFlags::empty());
            // What was opened, or failed, may be what has another file in its place now, or none.
            return if location.still_has(&before) {
                Self::known(opened?, &before, purpose)
            } else {
                Err(Fault::Moved)
            };
        }
        if purpose == Purpose::Look {
            return Ok(None);
        }
        let Some(making) = location.begin_to_make(patience)? else { return Err(Fault::Moved) };
        let made = Self::connect(location, component, purpose, patience, OpenFlags::SQLITE_OPEN_CREATE);
        match &made {
            Err(Fault::Before(error))
                if code(error) == Some(ErrorCode::SystemIoFailure) && !location.is_there()? =>
            {
                return Err(Fault::Moved);
            }
            // Somebody else is at it.
            Err(Fault::Before(error)) if is_busy(error) => {}
            Err(_) => making.undo(),
            Ok(_) => {}
        }
        Self::known(made?, &Files::default(), purpose)
    }

    /// SQLite does not tell which log it has opened, of several that had the name meanwhile. So whoever is to
    /// store opens once more if there was another one before, or none.
    fn known(opened: Option<Self>, before: &Files, purpose: Purpose) -> Result<Option<Self>, Fault> {
        match opened {
            Some(open) if purpose == Purpose::Change && open.files != *before => {
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
        patience: &LockTimeout,
        create: OpenFlags,
    ) -> Result<Option<Self>, Fault> {
        // No URI: a file may be called so. The path is absolute, so that an SQLite built to read them sees
        // none either.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE
            | create;
        let connection = Connection::open_with_flags(location.path(), flags)?;
        #[cfg(all(test, unix))]
        let connection = crate::tasks::interleaved::watched(connection);
        connection.busy_timeout(std::time::Duration::ZERO)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // Else SQLite prepares statements again for every value of some parameters, such as a limit.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        // SQLite opens what it may not write to for reading, and would leave a log beside it.
        if purpose == Purpose::Change && connection.is_readonly("main")? {
            return Err(read_only(location).into());
        }
        // What is somebody else's is left as it is, so look first.
        let version = until_free(patience, || schema::version(component, &connection, location))?;
        let is_current = version == component.known();
        match purpose {
            Purpose::Change => {
                keep_a_log(&connection, location, patience)?;
                if !is_current {
                    schema::migrate(component, &connection, location, patience)?;
                }
            }
            Purpose::Look if version == 0 => return Ok(None),
            Purpose::Look if !is_current => {
                let what = "has older tables: the next command that stores brings them up to date";
                return Err(told(location, StateErrorKind::Unreachable, what).into());
            }
            Purpose::Look => {}
        }
        Ok(Some(Self { connection, files: location.files() }))
    }

    /// Fails if the file does not begin as a database does. A connection that also reads the log
    /// would not notice, if the log has all pages that it reads. Other errors are no evidence: in
    /// the middle of a checkpoint the file alone is inconsistent.
    ///
    /// Only SQLite may open the file: closing it by other means would release the locks of this
    /// process.
    pub(crate) fn check_header(location: &Location) -> Result<(), Fault> {
        let path = percent_encode(location.path().as_os_str().as_encoded_bytes(), NON_ALPHANUMERIC);
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // Immutable: without the log and without locks.
        let connection = Connection::open_with_flags(format!("file:{path}?immutable=1"), flags)?;
        let version = connection.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0));
        match version {
            Err(error) if code(&error) == Some(ErrorCode::NotADatabase) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Does what may store something, in a transaction.
    pub(crate) fn change<T>(
        &self,
        location: &Location,
        patience: &LockTimeout,
        work: impl Fn(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let transaction = begin(&self.connection, patience)?;
        self.check_files(location)?;
        let done = work(&transaction)?;
        transaction.commit().map_err(Fault::Commit)?;
        Ok(done)
    }

    /// Does what only looks.
    pub(crate) fn look<T>(
        &self,
        location: &Location,
        patience: &LockTimeout,
        look: impl Fn(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        until_free(patience, || {
            self.check_files(location)?;
            look(&self.connection)
        })
    }

    /// The files that had the names when it was opened.
    pub(crate) fn files(&self) -> Files {
        self.files
    }

    /// Closes it. The last one who does writes the log into the database, but for one that others have
    /// replaced.
    pub(crate) fn close(self, location: &Location) {
        if location.files().have_another_log(&self.files) {
            self.leave_the_log();
        }
    }

    pub(crate) fn leave_the_log(&self) {
        let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    }

    /// A deleted file goes on living for those who have it open: they would work on something that nobody
    /// else sees.
    fn check_files(&self, location: &Location) -> Result<(), Fault> {
        if self.is_at(location) { Ok(()) } else { Err(Fault::Moved) }
    }

    /// Whether the names stand for the files that are open.
    pub(crate) fn is_at(&self, location: &Location) -> bool {
        location.files() == self.files
    }
}

/// Switches to the write-ahead log, in which those who look and the one who writes do not wait for each
/// other.
fn keep_a_log(connection: &Connection, location: &Location, patience: &LockTimeout) -> Result<(), Fault> {
    let journal = until_free(patience, || {
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
        return Err(told(location, StateErrorKind::Unsupported, &text).into());
    }
    let synchronous = match location.durability() {
        Durability::Full => "FULL",
        Durability::Relaxed => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    // macOS flushes to the disk, not only to its cache, where it is asked to.
    connection.pragma_update(None, "fullfsync", location.durability() == Durability::Full)?;
    // A log that had to grow, since somebody looked for long, shrinks again. SQLite empties it every 1,000
    // pages.
    connection.pragma_update(None, "journal_size_limit", LOG_SIZE)?;
    Ok(())
}

/// More than there are.
const STATEMENTS: usize = 256;

/// What the log usually grows to: 1,000 pages, in bytes.
const LOG_SIZE: i64 = 4 << 20;

/// Begins a transaction that may write, once nobody else does.
pub(crate) fn begin<'c>(
    connection: &'c Connection,
    patience: &LockTimeout,
) -> Result<Transaction<'c>, Fault> {
    until_free(patience, || Ok(Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?))
}

/// Makes an attempt, and again while somebody else has the database.
fn until_free<T>(patience: &LockTimeout, attempt: impl FnMut() -> Result<T, Fault>) -> Result<T, Fault> {
    patience.until_free(|result| matches!(result, Err(Fault::Before(error)) if is_busy(error)), attempt)
}
