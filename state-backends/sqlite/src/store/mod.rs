//! An SQLite database as a store: where it is, how it is opened, and transactions on it. What is kept in it,
//! the store does not know.

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
mod gate;
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

/// So many look at the same time: each has a connection, of three open files.
const MAX_READERS: u32 = 16;

/// One SQLite database that processes share. A clone is another handle to the same connection.
#[derive(Clone)]
pub struct SqliteStore {
    location: Arc<Location>,
    /// Keeps the threads of this process apart. An async one, so that commands that wait for each other
    /// occupy no thread.
    write_connection: Arc<Mutex<WriteConnection>>,
    read_permits: Arc<Semaphore>,
    read_pool: Arc<ReadPool>,
}

impl SqliteStore {
    /// Begins to open the database at `path`, which need not be there, in a directory that must be.
    pub fn builder(path: impl Into<PathBuf>) -> Builder {
        Builder::new(path.into())
    }

    /// Where the database really is: absolute and without symbolic links.
    pub fn path(&self) -> &Path {
        self.location.path()
    }

    /// Closes the connections of this store and of its clones, after the commands that run. If no other process has the
    /// database open, all that was stored is in the database file then, and the `-wal` beside it is gone.
    ///
    /// Call it before the process ends. The next command opens the database again; until then, who watches a queue is
    /// not notified.
    ///
    /// # Errors
    ///
    /// The runtime is shutting down.
    ///
    /// # Cancel safety
    ///
    /// Once begun it is carried through.
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
            // First, since SQLite leaves a log where it may only look.
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

    /// Does what may store something, in a transaction on tables that are made first if they are not there.
    /// It may be tried several times. Once begun it is carried through. What works on tables of another
    /// version says that they have [`Moved`](Fault::Moved).
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        component: &'static Component,
        work: impl Fn(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StateError> {
        // The wait for commands of this process counts too, so that a queue of them does not wait one
        // time-out each.
        let timeout = self.location.begin_timeout();
        let mut write_connection = self.write_connection.clone().lock_owned().await;
        self.read_pool.opened();
        blocking(move || write_connection.change(component, &timeout, work)).await
    }

    /// The same on a thread that may block.
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

    /// Looks at the database on a thread that may block, by a connection that is kept: to open one takes far longer
    /// than a short look.
    pub(crate) fn read_here<T>(
        &self,
        component: &'static Component,
        work: impl Fn(&Connection) -> Result<T, Fault>,
    ) -> Result<Option<T>, StateError> {
        self.read_pool.read(component, &self.location.begin_timeout(), work)
    }

    /// The same on a thread of its own, once not too many others of this process do.
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

    /// Looks for those who watch, on a thread that may block, unless the store is closed. None: it is.
    pub(crate) fn read_unless_closed<T>(
        &self,
        component: &'static Component,
        work: impl Fn(&Connection) -> Result<T, Fault>,
    ) -> Result<Option<Option<T>>, StateError> {
        self.read_pool.read_unless_closed(component, &self.location.begin_timeout(), work)
    }

    /// How long a command waits for others.
    pub(crate) fn lock_timeout(&self) -> Duration {
        self.location.lock_timeout()
    }

    /// What processes pass one at a time.
    pub(crate) fn gate(&self) -> Gate {
        Gate::beside(self.path())
    }

    /// Makes the tables of a component, or brings them up to date, in the transaction that is open.
    pub(crate) fn upgrade(&self, component: &Component, on: &Connection) -> Result<(), Fault> {
        schema::upgrade(component, on, &self.location)
    }

    /// The error of a fault.
    pub(crate) fn error_of(&self, fault: Fault) -> StateError {
        fault.into_error(&self.location)
    }

    /// The error of a command that waited too long for others.
    pub(crate) fn held_too_long(&self) -> StateError {
        held_too_long(&self.location)
    }

    /// Looks at the database, once not too many others of this process do. None: there are no such tables.
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
