//! An SQLite database as a store, whatever its contents: location, connections and transactions.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use interval_queue_contract::StateError;
use interval_queue_store::{Component, files::blocking};
use rusqlite::Connection;
use tokio::sync::{Mutex, Semaphore};

mod builder;
mod connection;
mod database;
mod error;
pub(crate) mod gate;
mod location;
mod schema;

pub use self::builder::{Builder, Durability};
pub(crate) use self::error::{code, is_busy};
use self::{
    connection::{ReadPool, WriteConnection, read},
    error::held_too_long,
    location::Location,
};
pub use self::{error::Fault, gate::Gate};

/// Each read has a connection, of three open files.
const MAX_READERS: u32 = 16;

/// One SQLite database that processes share. Clones share the connections.
#[derive(Clone)]
pub struct SqliteStore {
    location: Arc<Location>,
    /// Serializes the commands of this process. An async mutex, so that waiting commands block no
    /// thread.
    write_connection: Arc<Mutex<WriteConnection>>,
    read_permits: Arc<Semaphore>,
    read_pool: Arc<ReadPool>,
}

impl SqliteStore {
    /// Returns a builder for the database at `path`. The directory must exist; the database need
    /// not.
    pub fn builder(path: impl Into<PathBuf>) -> Builder {
        Builder::new(path.into())
    }

    /// The path of the database: absolute and without symbolic links.
    pub fn path(&self) -> &Path {
        self.location.path()
    }

    /// Closes the connections of this store and of its clones, after the running commands. If no
    /// other process has the database open, the database file then contains everything, and the
    /// `-wal` next to it is gone.
    ///
    /// Call this before the process ends. The next command reopens the database; until then,
    /// watchers are not notified.
    ///
    /// # Errors
    ///
    /// The runtime is shutting down.
    ///
    /// # Cancel safety
    ///
    /// Once begun, it is completed.
    pub async fn close(&self) -> Result<(), StateError> {
        let mut write_connection = self.write_connection.clone().lock_owned().await;
        let read_permits = self.read_permits.clone().acquire_many_owned(MAX_READERS).await;
        let read_pool = self.read_pool.clone();
        blocking(move || {
            let _permits = read_permits;
            read_pool.close();
            write_connection.close();
            Ok(())
        })
        .await
    }

    async fn open(options: Builder) -> Result<Self, StateError> {
        blocking(move || {
            let location = Arc::new(Location::find(&options)?);
            // Must come first: SQLite leaves a log where it may only read.
            location.check_writable()?;
            let write_connection = Arc::new(Mutex::new(WriteConnection::new(location.clone())));
            let read_pool = Arc::new(ReadPool::new(location.clone()));
            Ok(Self {
                location,
                write_connection,
                read_permits: Arc::new(Semaphore::new(MAX_READERS as usize)),
                read_pool,
            })
        })
        .await
    }

    /// Runs `work` in a transaction, after creating missing tables. `work` may run several times;
    /// once begun, it is completed. If the tables have another version, it must return
    /// [`Moved`](Fault::Moved).
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        component: &'static Component,
        work: impl Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StateError> {
        // Includes the wait for commands of this process, so that a queue of commands does not wait
        // one time-out each.
        let timeout = self.location.begin_timeout();
        let mut write_connection = self.write_connection.clone().lock_owned().await;
        self.read_pool.opened();
        blocking(move || write_connection.change(component, &timeout, work)).await
    }

    /// Must run on a thread that may block.
    pub(crate) fn change_here<T>(
        &self,
        component: &'static Component,
        work: impl Fn(&Connection) -> Result<T, Fault>,
    ) -> Result<T, StateError> {
        let timeout = self.location.begin_timeout();
        let mut write_connection = self.write_connection.blocking_lock();
        self.read_pool.opened();
        write_connection.change(component, &timeout, work)
    }

    /// Must run on a thread that may block. Keeps connections: opening one takes far longer than a
    /// short read.
    pub(crate) fn read_here<T>(
        &self,
        component: &'static Component,
        work: impl Fn(&Connection) -> Result<T, Fault>,
    ) -> Result<Option<T>, StateError> {
        self.read_pool.read(component, &self.location.begin_timeout(), work)
    }

    /// On another thread, with at most [`MAX_READERS`] reads at a time.
    pub(crate) async fn read_pooled<T: Send + 'static>(
        &self,
        component: &'static Component,
        work: impl Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<Option<T>, StateError> {
        let store = self.clone();
        let permit = self.read_permits.clone().acquire_owned().await;
        blocking(move || {
            let _permit = permit;
            store.read_here(component, work)
        })
        .await
    }

    /// Must run on a thread that may block. `None`: the store is closed.
    pub(crate) fn read_unless_closed<T>(
        &self,
        component: &'static Component,
        work: impl Fn(&Connection) -> Result<T, Fault>,
    ) -> Result<Option<Option<T>>, StateError> {
        self.read_pool.read_unless_closed(component, &self.location.begin_timeout(), work)
    }

    pub(crate) fn lock_timeout(&self) -> Duration {
        self.location.lock_timeout()
    }

    pub(crate) fn gate(&self) -> Gate {
        Gate::beside(self.path())
    }

    /// Uses the open transaction.
    pub(crate) fn upgrade(&self, component: &Component, on: &Connection) -> Result<(), Fault> {
        schema::upgrade(component, on, &self.location)
    }

    pub(crate) fn error_of(&self, fault: Fault) -> StateError {
        fault.into_error(&self.location)
    }

    pub(crate) fn held_too_long(&self) -> StateError {
        held_too_long(&self.location)
    }

    /// With at most [`MAX_READERS`] reads at a time. `None`: there are no such tables.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        component: &'static Component,
        work: impl Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<Option<T>, StateError> {
        let (location, timeout) = (self.location.clone(), self.location.begin_timeout());
        let permit = self.read_permits.clone().acquire_owned().await;
        blocking(move || {
            let _permit = permit;
            read(&location, component, &timeout, work)
        })
        .await
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("location", &self.location).finish_non_exhaustive()
    }
}
