//! [`Store`]: opens stores by URL.

use std::sync::Arc;

use futures::future::BoxFuture;
use interval_queue_contract::{InvalidInput, SharedState};
#[cfg(feature = "json-file")]
use interval_queue_contract::{StateError, StateErrorKind};
#[cfg(feature = "directory")]
use interval_queue_directory::{DirectoryStore, DirectoryTasks};
#[cfg(feature = "json-file")]
use interval_queue_json_file::{JsonFileState, JsonFileStore};
use interval_queue_memory::{MemoryState, MemoryTasks};
#[cfg(feature = "postgres")]
use interval_queue_postgres::{PostgresState, PostgresStore, PostgresTasks};
#[cfg(feature = "redis")]
use interval_queue_redis::{RedisState, RedisStore, RedisTasks};
#[cfg(feature = "sqlite")]
use interval_queue_sqlite::{SqliteState, SqliteStore, SqliteTasks};
use interval_queue_store::Url;
use interval_queue_task_contract::TaskStore;

use crate::Error;

const KNOWN_URLS: &str = "memory:, file:PATH, dir:PATH, sqlite:PATH, redis://HOST, rediss://HOST, redis+unix://PATH, redis+sentinel://…, \
                     redis+cluster://…, postgres://HOST/DATABASE";

/// A store: the memory of this process, a file, a database or a server. A clone is the same store.
#[derive(Clone, Debug)]
pub struct Store(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Memory(MemoryState, MemoryTasks),
    #[cfg(feature = "json-file")]
    File(JsonFileStore),
    #[cfg(feature = "directory")]
    Directory(DirectoryStore),
    #[cfg(feature = "redis")]
    Redis(RedisStore),
    #[cfg(feature = "postgres")]
    Postgres(PostgresStore),
    #[cfg(feature = "sqlite")]
    Sqlite(SqliteStore),
}

/// Opens the store at `url`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), interval_queue::Error> {
/// use std::time::Duration;
/// use interval_queue::{IntervalQueue, connect};
///
/// let store = connect("memory:").await?;
/// let mails = IntervalQueue::builder("mails").interval(Duration::from_millis(20)).open(&store).await?;
/// # Ok(())
/// # }
/// ```
///
/// | URL | store | feature |
/// |---|---|---|
/// | `memory:` | the memory of this process, new with each call | |
/// | `file:PATH` | a JSON file | `json-file` (default) |
/// | `dir:PATH` | a directory with a file per task, and the rate in `pace.json` | `directory` |
/// | `sqlite:PATH` | an SQLite database | `sqlite` |
/// | `redis://[user:password@]host[:port][/database]` | Redis or Valkey | `redis` |
/// | `rediss://…` | Redis over TLS | `redis-tls` |
/// | `redis+unix:///path/to.sock` | Redis over a Unix socket | `redis` |
/// | `redis+sentinel://host[:port],…/master[/database]` | the sentinels' master | `redis-sentinel` |
/// | `redis+cluster://host[:port],…` | a Redis cluster | `redis-cluster` |
/// | `postgres://[user[:password]@]host[:port],…[/database]` | PostgreSQL | `postgres` |
///
/// A relative `PATH` starts at the working directory: `sqlite:a.db` and `sqlite://a.db` are
/// relative, `sqlite:///a.db` is not. `postgresql://` is the same as `postgres://`.
///
/// Parameters follow a `?`, joined by `&`; durations have a unit, as in `5s` or `250ms`:
///
/// | parameter | of | meaning | default |
/// |---|---|---|---|
/// | `fsync=always` or `never` | file, directory | flush every change to the disk | `never` |
/// | `replacement=rename` or `in-place` | file | replace a small file, or overwrite it | `in-place` |
/// | `clock=server` or `host` | file, directory | clock on network mounts | `host`; directory: `server` |
/// | `lock_timeout=D` | file, directory, SQLite | longest wait for the lock | `5s` |
/// | `durability=full` or `relaxed` | SQLite, PostgreSQL | `full`: on disk before the reply | `full` |
/// | `prefix=TEXT` | Redis | prefix of all keys | `interval-queue` |
/// | `timeout=D` | Redis, PostgreSQL | longest time for one command | `2s` |
/// | `idle_expiry=D` | Redis | how long an idle queue is kept | `7days` |
/// | `ca=PATH` | `rediss` | certificates to trust instead of the system's | |
/// | `db=N`, `user=TEXT`, `pass=TEXT` | `redis+unix` | database and credentials | 0, none |
/// | `sentinel-user=TEXT`, `sentinel-password=TEXT` | sentinels | credentials | none |
/// | `schema=NAME` | PostgreSQL | the schema of the tables | `interval_queue` |
/// | `connections=N` | PostgreSQL | maximum connections | 4 |
///
/// A PostgreSQL URL also accepts most parameters of libpq, such as `sslmode`, `sslrootcert` (TLS
/// needs the feature `postgres-tls`), `host`, `application_name`, `connect_timeout`, `options` or
/// `target_session_attrs`: `postgres://a,b/jobs?target_session_attrs=read-write` uses the host that
/// accepts writes. `PGPASSWORD`, `.pgpass` and service files are not read.
///
/// In a path or a value, write `%3F` for `?`, `%26` for `&`, `%40` for `@`, `%25` for `%`.
///
/// # Errors
///
/// [`Invalid`](crate::ErrorKind::Invalid) for an unknown scheme or parameter, with the known ones,
/// and for a scheme whose feature is off. [`State`](crate::ErrorKind::State) if the store cannot be
/// used.
pub async fn connect(url: &str) -> Result<Store, Error> {
    Ok(Store(match Address::parse(url)? {
        Address::Memory => Kind::Memory(MemoryState::new(), MemoryTasks::new()),
        #[cfg(feature = "json-file")]
        Address::File(builder) => Kind::File(builder.open().await?),
        #[cfg(feature = "directory")]
        Address::Directory(builder) => Kind::Directory(builder.open().await?),
        #[cfg(feature = "redis")]
        Address::Redis(builder) => Kind::Redis(builder.connect().await?),
        #[cfg(feature = "postgres")]
        Address::Postgres(builder) => Kind::Postgres(builder.connect().await?),
        #[cfg(feature = "sqlite")]
        Address::Sqlite(builder) => Kind::Sqlite(builder.open().await?),
    }))
}

impl Store {
    /// The backend of the queues, which keeps their records and so their rates.
    ///
    /// # Errors
    ///
    /// [`State`](crate::ErrorKind::State) if the stored data cannot be used, such as data of a
    /// newer version.
    pub async fn rates(&self) -> Result<Arc<dyn SharedState>, Error> {
        Ok(match &self.0 {
            Kind::Memory(state, _) => Arc::new(state.clone()),
            #[cfg(feature = "json-file")]
            Kind::File(store) => Arc::new(JsonFileState::on(store).await?),
            #[cfg(feature = "directory")]
            Kind::Directory(store) => Arc::new(JsonFileState::on(&store.pace().await?).await?),
            #[cfg(feature = "redis")]
            Kind::Redis(store) => Arc::new(RedisState::on(store)),
            #[cfg(feature = "postgres")]
            Kind::Postgres(store) => Arc::new(PostgresState::on(store).await?),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(store) => Arc::new(SqliteState::on(store).await?),
        })
    }

    /// The backend of the stored tasks. The crate `interval-queue-tasks` adds and runs them.
    ///
    /// # Errors
    ///
    /// As [`rates`](Self::rates); of kind [`Unsupported`](crate::StateErrorKind::Unsupported) if the
    /// store keeps no tasks.
    pub async fn tasks(&self) -> Result<Arc<dyn TaskStore>, Error> {
        Ok(match &self.0 {
            Kind::Memory(_, tasks) => Arc::new(tasks.clone()),
            #[cfg(feature = "directory")]
            Kind::Directory(store) => Arc::new(DirectoryTasks::on(store).await?),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(store) => Arc::new(SqliteTasks::on(store).await?),
            #[cfg(feature = "redis")]
            Kind::Redis(store) => Arc::new(RedisTasks::on(store)),
            #[cfg(feature = "postgres")]
            Kind::Postgres(store) => Arc::new(PostgresTasks::on(store).await?),
            #[cfg(feature = "json-file")]
            Kind::File(_) => {
                let text = "a JSON file keeps no tasks: use dir:PATH, sqlite:PATH, redis://HOST, postgres://HOST/DATABASE, or \
                            memory: for one process";
                return Err(StateError::new(StateErrorKind::Unsupported, text).into());
            }
        })
    }

    /// A risk of the store's configuration, such as a Redis that evicts keys. Opening the store
    /// logs it, too.
    pub fn warning(&self) -> Option<&str> {
        match &self.0 {
            #[cfg(feature = "redis")]
            Kind::Redis(store) => store.warning(),
            _ => None,
        }
    }

    /// Closes this process's connections after the running commands. The next command reconnects.
    ///
    /// Only SQLite needs it: call it before the process ends if someone may copy the database.
    /// While a connection is open, or was not closed, the latest commands are in the `-wal` file.
    /// Dropping all handles also closes it, but nothing waits for that.
    ///
    /// # Errors
    ///
    /// [`State`](crate::ErrorKind::State) if the runtime is shutting down.
    ///
    /// # Cancel safety
    ///
    /// Once begun, it completes even if dropped.
    pub async fn close(&self) -> Result<(), Error> {
        match &self.0 {
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(store) => Ok(store.close().await?),
            _ => Ok(()),
        }
    }

    /// Returns the SQL that creates the missing tables of an SQL store; empty if none are missing.
    /// `None`: the store has no tables.
    ///
    /// # Errors
    ///
    /// [`State`](crate::ErrorKind::State) if the stored data cannot be used, such as data of a
    /// newer version.
    pub async fn missing_tables(&self) -> Result<Option<String>, Error> {
        Ok(match &self.0 {
            #[cfg(feature = "postgres")]
            Kind::Postgres(store) => Some(store.missing_tables().await?),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(store) => Some(store.missing_tables().await?),
            _ => None,
        })
    }

    /// Creates the missing tables of an SQL store. Returns true if any were missing. The first
    /// command that stores also creates them; call this as a user who may, on behalf of users who
    /// may not.
    ///
    /// # Errors
    ///
    /// [`State`](crate::ErrorKind::State) if the stored data cannot be used, or the user may not
    /// create tables.
    pub async fn make_tables(&self) -> Result<bool, Error> {
        Ok(match &self.0 {
            #[cfg(feature = "postgres")]
            Kind::Postgres(store) => store.make_tables().await?,
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(store) => store.make_tables().await?,
            _ => false,
        })
    }
}

/// A source of the backend that keeps a queue's record: a [`Store`], or any [`SharedState`].
pub trait StateSource {
    /// Returns the backend.
    fn into_state<'a>(self) -> BoxFuture<'a, Result<Arc<dyn SharedState>, Error>>
    where
        Self: 'a;
}

impl<S: SharedState> StateSource for S {
    fn into_state<'a>(self) -> BoxFuture<'a, Result<Arc<dyn SharedState>, Error>>
    where
        Self: 'a,
    {
        let state: Arc<dyn SharedState> = Arc::new(self);
        Box::pin(std::future::ready(Ok(state)))
    }
}

impl StateSource for &Store {
    fn into_state<'a>(self) -> BoxFuture<'a, Result<Arc<dyn SharedState>, Error>>
    where
        Self: 'a,
    {
        Box::pin(self.rates())
    }
}

impl From<&Store> for Store {
    fn from(store: &Store) -> Self {
        store.clone()
    }
}

#[cfg(feature = "json-file")]
impl From<JsonFileStore> for Store {
    fn from(store: JsonFileStore) -> Self {
        Self(Kind::File(store))
    }
}

#[cfg(feature = "directory")]
impl From<DirectoryStore> for Store {
    fn from(store: DirectoryStore) -> Self {
        Self(Kind::Directory(store))
    }
}

#[cfg(feature = "redis")]
impl From<RedisStore> for Store {
    fn from(store: RedisStore) -> Self {
        Self(Kind::Redis(store))
    }
}

#[cfg(feature = "postgres")]
impl From<PostgresStore> for Store {
    fn from(store: PostgresStore) -> Self {
        Self(Kind::Postgres(store))
    }
}

#[cfg(feature = "sqlite")]
impl From<SqliteStore> for Store {
    fn from(store: SqliteStore) -> Self {
        Self(Kind::Sqlite(store))
    }
}

/// Nothing is opened yet.
#[allow(clippy::large_enum_variant, reason = "there is one of it at a time")]
pub(crate) enum Address {
    Memory,
    #[cfg(feature = "json-file")]
    File(interval_queue_json_file::Builder),
    #[cfg(feature = "directory")]
    Directory(interval_queue_directory::Builder),
    #[cfg(feature = "redis")]
    Redis(interval_queue_redis::Builder),
    #[cfg(feature = "postgres")]
    Postgres(interval_queue_postgres::Builder),
    #[cfg(feature = "sqlite")]
    Sqlite(interval_queue_sqlite::Builder),
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, InvalidInput> {
        let url = Url::parse(url, KNOWN_URLS)?;
        match feature_of(url.scheme()) {
            Some("") => memory(url),
            #[cfg(feature = "json-file")]
            Some("json-file") => interval_queue_json_file::Builder::from_url(url).map(Self::File),
            #[cfg(feature = "directory")]
            Some("directory") => interval_queue_directory::Builder::from_url(url).map(Self::Directory),
            #[cfg(feature = "sqlite")]
            Some("sqlite") => interval_queue_sqlite::Builder::from_url(url).map(Self::Sqlite),
            #[cfg(feature = "redis")]
            Some("redis") => interval_queue_redis::Builder::from_url(url).map(Self::Redis),
            #[cfg(feature = "postgres")]
            Some("postgres") => interval_queue_postgres::Builder::from_url(url).map(Self::Postgres),
            Some(feature) => {
                let scheme = url.scheme();
                let text = format!("{scheme}: needs the feature \"{feature}\" of the crate interval-queue");
                Err(InvalidInput::new(text))
            }
            None => Err(url.unknown_scheme(KNOWN_URLS)),
        }
    }
}

/// Empty for `memory:`.
fn feature_of(scheme: &str) -> Option<&'static str> {
    Some(match scheme {
        "memory" => "",
        "file" => "json-file",
        "dir" => "directory",
        "sqlite" => "sqlite",
        "redis" | "rediss" | "redis+unix" | "redis+sentinel" | "rediss+sentinel" | "redis+cluster"
        | "rediss+cluster" => "redis",
        "postgres" | "postgresql" => "postgres",
        _ => return None,
    })
}

fn memory(url: Url) -> Result<Address, InvalidInput> {
    let place = url.place().escape_debug().to_string();
    url.finish()?;
    if place.is_empty() {
        return Ok(Address::Memory);
    }
    Err(InvalidInput::new(format!(
        "memory:{place}: memory has no name, it belongs to one process; use \"memory:\""
    )))
}
