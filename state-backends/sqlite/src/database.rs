//! The open database: how it is opened, and one command on it.

use interval_queue_contract::{Command, QueueName, Record, Reply, StateError, StateErrorKind, rules};
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, config::DbConfig,
};

use crate::{
    Durability, clock,
    error::{Fault, code, read_only, told},
    patience::{Patience, is_busy},
    place::{Files, Place},
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
    pub(crate) fn open(place: &Place, purpose: Purpose, patience: &Patience) -> Result<Option<Self>, Fault> {
        place.check_mount()?;
        if place.is_there()? {
            let before = place.files();
            let opened = Self::connect(place, purpose, patience, OpenFlags::empty());
            // What was opened, or failed, may be what has another file in its place now, or none.
            return if place.still_has(&before) {
                Self::known(opened?, &before, purpose)
            } else {
                Err(Fault::Moved)
            };
        }
        if purpose == Purpose::Look {
            return Ok(None);
        }
        let Some(making) = place.begin_to_make(patience)? else { return Err(Fault::Moved) };
        let made = Self::connect(place, purpose, patience, OpenFlags::SQLITE_OPEN_CREATE);
        match &made {
            Err(Fault::Before(error))
                if code(error) == Some(ErrorCode::SystemIoFailure) && !place.is_there()? =>
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
        place: &Place,
        purpose: Purpose,
        patience: &Patience,
        create: OpenFlags,
    ) -> Result<Option<Self>, Fault> {
        // No URI: a file may be called so. The path is absolute, so that an SQLite built to read them sees
        // none either.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE
            | create;
        let connection = Connection::open_with_flags(place.path(), flags)?;
        connection.busy_timeout(std::time::Duration::ZERO)?;
        // SQLite opens what it may not write to for reading, and would leave a log beside it.
        if purpose == Purpose::Change && connection.is_readonly("main")? {
            return Err(read_only(place).into());
        }
        // What is somebody else's is left as it is, so look first.
        let version = until_free(patience, || schema::version(&connection, place))?;
        let is_current = schema::is_current(place, version)?;
        match purpose {
            Purpose::Change => {
                keep_a_log(&connection, place, patience)?;
                if !is_current {
                    schema::migrate(&connection, place, patience)?;
                }
            }
            Purpose::Look if version == 0 => return Ok(None),
            Purpose::Look if !is_current => {
                let what = "has older tables: the next command that stores brings them up to date";
                return Err(told(place, StateErrorKind::Unreachable, what).into());
            }
            Purpose::Look => {}
        }
        Ok(Some(Self { connection, files: place.files() }))
    }

    /// Carries out a command that may store.
    pub(crate) fn change(
        &self,
        place: &Place,
        patience: &Patience,
        queue: &QueueName,
        command: &Command,
    ) -> Result<Reply, Fault> {
        let transaction = patience
            .until_free(|| Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate))?;
        let mut record = self.load(place, queue)?;
        let reply = rules::apply(&mut record, &clock::host(), command)?;
        if let Some(record) = record {
            transaction.execute(
                "INSERT INTO interval_queue VALUES (?1, ?2) ON CONFLICT DO UPDATE SET record = excluded.record",
                (queue.as_str(), record.to_json()?),
            )?;
            transaction.commit().map_err(Fault::Commit)?;
        }
        Ok(reply)
    }

    /// What is stored of a queue.
    pub(crate) fn record(
        &self,
        place: &Place,
        patience: &Patience,
        queue: &QueueName,
    ) -> Result<Option<Record>, Fault> {
        until_free(patience, || self.load(place, queue))
    }

    /// The names of the queues, sorted.
    pub(crate) fn queues(&self, place: &Place, patience: &Patience) -> Result<Vec<QueueName>, Fault> {
        let names: Vec<String> = until_free(patience, || {
            self.check_files(place)?;
            let mut names = self.connection.prepare("SELECT name FROM interval_queue ORDER BY name")?;
            let names = names.query_map([], |row| row.get(0))?;
            Ok(names.collect::<Result<_, _>>()?)
        })?;
        let named = |name: String| {
            QueueName::new(name).map_err(|error| {
                let what = "has a queue in table interval_queue whose name is none: remove that row";
                told(place, StateErrorKind::Foreign, what).with_source(error).into()
            })
        };
        names.into_iter().map(named).collect()
    }

    /// What is stored of a queue, in tables that are still those that were opened.
    fn load(&self, place: &Place, queue: &QueueName) -> Result<Option<Record>, Fault> {
        self.check_files(place)?;
        let stored = self.connection.query_row(
            "SELECT version, (SELECT record FROM interval_queue WHERE name = ?1) FROM interval_queue_schema",
            [queue.as_str()],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<String>>(1)?)),
        );
        match stored.optional()? {
            Some((version, text)) if version == schema::VERSION as i64 => {
                let record = text.map(|text| Record::from_json(&text)).transpose();
                Ok(record.map_err(|error| unusable(place, queue, error))?)
            }
            // Another version of this software has changed them, or they were made again.
            _ => Err(Fault::Moved),
        }
    }

    /// The files that had the names when it was opened.
    pub(crate) fn files(&self) -> Files {
        self.files
    }

    /// Closes it. The last one who does writes the log into the database, but for one that others have
    /// replaced.
    pub(crate) fn close(self, place: &Place) {
        if place.files().have_another_log(&self.files) {
            self.leave_the_log();
        }
    }

    fn leave_the_log(&self) {
        let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    }

    /// A deleted file goes on living for those who have it open: they would work on something that nobody
    /// else sees.
    fn check_files(&self, place: &Place) -> Result<(), Fault> {
        if self.is_at(place) { Ok(()) } else { Err(Fault::Moved) }
    }

    /// Whether the names stand for the files that are open.
    pub(crate) fn is_at(&self, place: &Place) -> bool {
        place.files() == self.files
    }
}

/// Switches to the write-ahead log, in which those who look and the one who writes do not wait for each
/// other.
fn keep_a_log(connection: &Connection, place: &Place, patience: &Patience) -> Result<(), Fault> {
    let journal = patience.until_free(|| {
        let now: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        if now == "wal" {
            return Ok(now);
        }
        connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
    })?;
    if journal != "wal" {
        let text = format!(
            "cannot have a write-ahead log, its journal stays {journal:?}: use a local disk, Redis or a JSON file"
        );
        return Err(told(place, StateErrorKind::Unsupported, &text).into());
    }
    let synchronous = match place.durability() {
        Durability::Full => "FULL",
        Durability::Relaxed => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    // macOS flushes to the disk, not only to its cache, where it is asked to.
    connection.pragma_update(None, "fullfsync", place.durability() == Durability::Full)?;
    // A log that had to grow, since somebody looked for long, shrinks again. SQLite empties it every 1,000
    // pages.
    connection.pragma_update(None, "journal_size_limit", LOG_SIZE)?;
    Ok(())
}

/// What the log usually grows to: 1,000 pages, in bytes.
const LOG_SIZE: i64 = 4 << 20;

/// As [`Patience::until_free`], for what may fail otherwise, too.
fn until_free<T>(patience: &Patience, mut attempt: impl FnMut() -> Result<T, Fault>) -> Result<T, Fault> {
    patience.until_free(|| match attempt() {
        Err(Fault::Before(error)) => Err(error),
        result => Ok(result),
    })?
}

fn unusable(place: &Place, queue: &QueueName, error: StateError) -> StateError {
    let what = match error.kind() {
        StateErrorKind::NewerVersion => "was written by a newer version: upgrade the program",
        _ => "cannot be used: put a good copy in its place, or remove its row to begin anew",
    };
    let text = format!("the record of queue {:?} in {} {what}", queue.as_str(), place.path().display());
    StateError::new(error.kind(), text).with_source(error)
}
