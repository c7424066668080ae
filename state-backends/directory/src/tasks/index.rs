//! The index: tables that can be rebuilt from the files, and the redo list of the last command.

use std::{cell::Cell, fs, io, path::PathBuf};

use interval_queue_contract::{QueueName, StateErrorKind};
use interval_queue_sqlite::index::{TASKS, Tables, Writes};
use interval_queue_store::files::{FileId, create};
use rusqlite::{Connection, OpenFlags, OptionalExtension, config::DbConfig};

use super::{TransactionError, leased_files::LeasedFiles};
use crate::store::Location;

/// Next to the tables of tasks, whose version they share.
const SCHEMA: &str = "
CREATE TABLE directory_index (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    version INTEGER NOT NULL,
    -- Whether all files were read.
    whole INTEGER NOT NULL,
    -- The last command that changed files, and what is to be done with them.
    command INTEGER NOT NULL,
    intents TEXT NOT NULL
) STRICT;
INSERT INTO directory_index VALUES (1, 0, 0, 0, '');
CREATE TABLE directory_seen (
    -- Directories that were looked at and are as they were then.
    queue TEXT NOT NULL,
    state TEXT NOT NULL,
    shard INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    PRIMARY KEY (queue, state, shard)
) STRICT, WITHOUT ROWID;
";
/// More than there are statements.
const STATEMENT_CACHE_SIZE: usize = 320;
/// Bytes to which an idle log shrinks.
const MAX_LOG_BYTES: i64 = 4 << 20;

#[derive(Debug)]
pub(super) struct Index {
    pub(super) connection: Connection,
    pub(super) writes: Writes,
    pub(super) path: PathBuf,
    /// The last command whose redo list was carried out, as far as this process knows.
    pub(super) carried_out: Cell<i64>,
    pub(super) leased_files: LeasedFiles,
    file: Option<FileId>,
}

impl Index {
    pub(super) fn tables<'i>(&'i self, queue: &'i QueueName) -> Tables<'i> {
        Tables::new(&self.connection, &self.path, &self.writes, queue)
    }

    /// Creates an empty index if there is none. The caller has the lock.
    pub(super) fn open(location: &Location) -> Result<Self, TransactionError> {
        let path = location.path().join("index.db");
        if !path.exists() {
            Self::remove(location)?;
        }
        location
            .files()
            .faults
            .step()
            .map_err(|error| TransactionError::Files(location.failed("open", "index.db", error)))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE;
        // SQLite would remove the right of others to write, whatever the umask.
        let _ = create(&path);
        let is_remote = location.is_remote();
        let connection = if is_remote && cfg!(unix) {
            // The lock of the directory excludes others. SQLite's own locks do not work on many
            // mounts.
            Connection::open_with_flags_and_vfs(&path, flags, c"unix-none")?
        } else {
            Connection::open_with_flags(&path, flags)?
        };
        connection.busy_timeout(location.lock_timeout())?;
        connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE_SIZE);
        // Otherwise SQLite prepares statements again for each value of some parameters, such as a
        // limit.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        if is_remote {
            connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
            connection.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(()))?;
        } else {
            connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
            connection.pragma_update(None, "journal_size_limit", MAX_LOG_BYTES)?;
        }
        // Without flushes the index is checked after a start of the host. Starts are not seen over
        // a mount.
        let synchronous = match (location.files().is_flushed(), is_remote) {
            (true, _) => "FULL",
            (false, true) => "NORMAL",
            (false, false) => "OFF",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        // Larger savepoints would otherwise be files in another directory.
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        migrate(location, &connection)?;
        let (file, carried_out) = (FileId::at(&path), Cell::new(0));
        Ok(Self {
            file,
            carried_out,
            leased_files: LeasedFiles::default(),
            writes: Writes::default(),
            path,
            connection,
        })
    }

    /// Whether the open file still has its name.
    pub(super) fn is_current(&self) -> bool {
        self.file.is_some() && FileId::at(&self.path) == self.file
    }

    pub(super) fn remove(location: &Location) -> Result<(), TransactionError> {
        for name in ["index.db-wal", "index.db-shm", "index.db-journal", "index.db"] {
            match fs::remove_file(location.path().join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(TransactionError::Files(location.failed("remove", name, error)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn query_value<T: rusqlite::types::FromSql>(&self, sql: &str) -> Result<T, TransactionError> {
        Ok(self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
    }

    /// After a crash of the host without flushes, only part of the index may be stored.
    pub(super) fn is_sound(&self) -> Result<bool, TransactionError> {
        Ok(self.query_value::<String>("PRAGMA integrity_check(1)")? == "ok")
    }

    pub(super) fn is_whole(&self) -> Result<bool, TransactionError> {
        self.query_value("SELECT whole FROM directory_index")
    }

    /// Number of the last command that changed files.
    pub(super) fn command(&self) -> Result<i64, TransactionError> {
        self.query_value("SELECT command FROM directory_index")
    }

    pub(super) fn redo_entries(&self) -> Result<String, TransactionError> {
        self.query_value("SELECT intents FROM directory_index")
    }

    pub(super) fn set_redo_entries(&self, command: i64, redo: &str) -> Result<(), TransactionError> {
        let sql = "UPDATE directory_index SET command = ?1, intents = ?2";
        self.connection.prepare_cached(sql)?.execute((command, redo))?;
        Ok(())
    }

    pub(super) fn mark_whole(&self) -> Result<(), TransactionError> {
        self.connection.execute("UPDATE directory_index SET whole = 1", [])?;
        Ok(())
    }

    /// Modification time at the last scan. `None`: scan the directory.
    pub(super) fn seen(
        &self,
        folder: &str,
        state: &str,
        shard: i64,
    ) -> Result<Option<i64>, TransactionError> {
        let sql = "SELECT changed FROM directory_seen WHERE queue = ?1 AND state = ?2 AND shard = ?3";
        Ok(self
            .connection
            .prepare_cached(sql)?
            .query_row((folder, state, shard), |row| row.get(0))
            .optional()?)
    }

    /// Includes modification times.
    pub(super) fn all_seen(&self, folder: &str, state: &str) -> Result<Vec<(i64, i64)>, TransactionError> {
        let sql = "SELECT shard, changed FROM directory_seen WHERE queue = ?1 AND state = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let seen = statement.query_map((folder, state), |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(seen.collect::<Result<_, _>>()?)
    }

    pub(super) fn set_seen(
        &self,
        folder: &str,
        state: &str,
        shard: i64,
        changed: i64,
    ) -> Result<(), TransactionError> {
        let sql =
            "INSERT OR REPLACE INTO directory_seen (queue, state, shard, changed) VALUES (?1, ?2, ?3, ?4)";
        self.connection.prepare_cached(sql)?.execute((folder, state, shard, changed))?;
        Ok(())
    }

    pub(super) fn forget_seen(&self, folder: &str, state: &str, shard: i64) -> Result<(), TransactionError> {
        let sql = "DELETE FROM directory_seen WHERE queue = ?1 AND state = ?2 AND shard = ?3";
        self.connection.prepare_cached(sql)?.execute((folder, state, shard))?;
        Ok(())
    }

    pub(super) fn forget_all_seen(&self) -> Result<(), TransactionError> {
        self.connection.execute("DELETE FROM directory_seen", [])?;
        Ok(())
    }
}

fn migrate(location: &Location, connection: &Connection) -> Result<(), TransactionError> {
    let transaction = connection.unchecked_transaction()?;
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'directory_index'";
    let version: u32 = match connection.query_row(tables, [], |row| row.get::<_, i64>(0))? {
        0 => 0,
        _ => connection.query_row("SELECT version FROM directory_index", [], |row| row.get(0))?,
    };
    let known = TASKS.known() as u32;
    if version > known {
        let what =
            format!("has an index.db of version {version}, and this one knows {known}: upgrade the program");
        return Err(location.error(StateErrorKind::NewerVersion, what).into());
    }
    if let Some(steps) = TASKS.steps(version as usize) {
        connection.execute_batch(&steps)?;
        if version == 0 {
            connection.execute_batch(SCHEMA)?;
        }
        connection.execute("UPDATE directory_index SET version = ?1", [known])?;
        transaction.commit()?;
    }
    Ok(())
}
