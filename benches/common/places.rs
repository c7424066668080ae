//! Where a state can live while it is measured.

use std::{env, path::Path, process::Command, sync::Arc};

use interval_queue_contract::SharedState;
use interval_queue_json_file::JsonFileState;
use interval_queue_memory::MemoryState;
use interval_queue_postgres::{PostgresState, PostgresStore};
use interval_queue_redis::RedisState;
use interval_queue_sqlite::{SqliteState, SqliteStore};
use interval_queue_test_support::{PostgresServer, RedisServer};
use tempfile::TempDir;

/// A file system in memory, where there is one.
const TMPFS: &str = "/dev/shm";

/// A place with a state of its own, gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) name: &'static str,
    store: Store,
}

#[derive(Debug)]
enum Store {
    Memory,
    File(TempDir),
    /// Of tasks; its pace is a file like any other.
    Directory(TempDir, Durability),
    Sqlite(TempDir, Durability),
    Redis(RedisServer),
    Postgres(PostgresServer, Durability),
}

/// Whether a crash of the host loses nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    Full,
    Relaxed,
}

/// What ends the address of a state that is not flushed each time.
const RELAXED: &str = "?durability=relaxed";

impl Backend {
    /// All there are on this machine. Says which are left out.
    pub(crate) fn all() -> Vec<Self> {
        let mut all = vec![Self::memory()];
        all.extend(Self::tmpfs());
        all.push(Self::disk());
        all.extend([Durability::Relaxed, Durability::Full].map(Self::sqlite));
        all.extend(Self::redis());
        all.extend([Durability::Relaxed, Durability::Full].into_iter().filter_map(Self::postgres));
        all
    }

    /// All that can store tasks on this machine. Says which are left out.
    pub(crate) fn of_tasks() -> Vec<Self> {
        let both = [Durability::Relaxed, Durability::Full];
        let mut all = vec![Self::memory()];
        all.extend(both.map(Self::directory));
        all.extend(both.map(Self::sqlite));
        all.extend(Self::redis());
        all.extend(both.into_iter().filter_map(Self::postgres));
        all
    }

    /// The memory of this process.
    pub(crate) fn memory() -> Self {
        Self { name: "memory", store: Store::Memory }
    }

    /// A JSON file that no disk delays.
    pub(crate) fn tmpfs() -> Option<Self> {
        if !Path::new(TMPFS).is_dir() {
            eprintln!("the file on tmpfs is left out: there is no {TMPFS}");
            return None;
        }
        Some(Self { name: "file on tmpfs", store: Store::File(directory_in(TMPFS.as_ref())) })
    }

    /// A JSON file where this program was built: the directory for temporary files may be in memory.
    pub(crate) fn disk() -> Self {
        Self { name: "file on disk", store: Store::File(directory_in(env!("CARGO_TARGET_TMPDIR").as_ref())) }
    }

    /// A server of its own.
    pub(crate) fn redis() -> Option<Self> {
        let program = env::var_os("INTERVAL_QUEUE_REDIS_SERVER").unwrap_or_else(|| "redis-server".into());
        if Command::new(&program).arg("--version").output().is_err() {
            eprintln!("redis is left out: {program:?} is not here");
            return None;
        }
        Some(Self { name: "redis", store: Store::Redis(RedisServer::start()) })
    }

    /// A directory of tasks where this program was built.
    pub(crate) fn directory(durability: Durability) -> Self {
        let name = match durability {
            Durability::Full => "directory on disk, fsync",
            Durability::Relaxed => "directory on disk",
        };
        Self { name, store: Store::Directory(directory_in(env!("CARGO_TARGET_TMPDIR").as_ref()), durability) }
    }

    /// A database where this program was built.
    pub(crate) fn sqlite(durability: Durability) -> Self {
        let name = match durability {
            Durability::Full => "sqlite on disk",
            Durability::Relaxed => "sqlite on disk, relaxed",
        };
        Self { name, store: Store::Sqlite(directory_in(env!("CARGO_TARGET_TMPDIR").as_ref()), durability) }
    }

    /// A server of its own, which flushes what it commits.
    pub(crate) fn postgres(durability: Durability) -> Option<Self> {
        if !PostgresServer::is_possible() {
            eprintln!("postgres is left out: its programs are not here");
            return None;
        }
        let name = match durability {
            Durability::Full => "postgres",
            Durability::Relaxed => "postgres, relaxed",
        };
        let server = PostgresServer::with_settings(&[("fsync", "on")]);
        Some(Self { name, store: Store::Postgres(server, durability) })
    }

    /// Where other processes find it; none: they cannot.
    pub(crate) fn address(&self) -> Option<String> {
        match &self.store {
            Store::Memory => None,
            Store::File(directory) => {
                Some(format!("file:{}", directory.path().join("queues.json").display()))
            }
            Store::Directory(directory, durability) => {
                let fsync = if *durability == Durability::Full { "?fsync=always" } else { "" };
                Some(format!("dir:{}{fsync}", directory.path().join("tasks").display()))
            }
            Store::Sqlite(directory, durability) => {
                let path = directory.path().join("queues.sqlite");
                Some(format!("sqlite:{}{}", path.display(), durability.parameter()))
            }
            Store::Redis(server) => Some(server.url().to_owned()),
            Store::Postgres(server, durability) => {
                Some(format!("{}{}", server.url(), durability.parameter()))
            }
        }
    }

    /// The server that it is in; none: it has none.
    pub(crate) fn server(&self) -> Option<&RedisServer> {
        match &self.store {
            Store::Redis(server) => Some(server),
            _ => None,
        }
    }

    /// The state, with a connection of its own.
    pub(crate) async fn open(&self) -> Arc<dyn SharedState> {
        match self.address() {
            Some(address) => open(&address).await,
            None => Arc::new(MemoryState::new()),
        }
    }
}

impl Durability {
    fn parameter(self) -> &'static str {
        match self {
            Self::Full => "",
            Self::Relaxed => RELAXED,
        }
    }
}

/// The state at the address of a place.
pub(crate) async fn open(address: &str) -> Arc<dyn SharedState> {
    use {interval_queue_postgres::Durability as OfPostgres, interval_queue_sqlite::Durability as OfSqlite};

    let (place, is_relaxed) = match address.strip_suffix(RELAXED) {
        Some(place) => (place, true),
        None => (address, false),
    };
    if let Some(path) = place.strip_prefix("file:") {
        return Arc::new(JsonFileState::open(path).await.unwrap());
    }
    if let Some(path) = place.strip_prefix("sqlite:") {
        let durability = if is_relaxed { OfSqlite::Relaxed } else { OfSqlite::Full };
        let store = SqliteStore::builder(path).durability(durability).open().await.unwrap();
        return Arc::new(SqliteState::on(&store).await.unwrap());
    }
    if place.starts_with("postgres:") {
        let durability = if is_relaxed { OfPostgres::Relaxed } else { OfPostgres::Full };
        let store = PostgresStore::builder(place).durability(durability).connect().await.unwrap();
        return Arc::new(PostgresState::on(&store).await.unwrap());
    }
    Arc::new(RedisState::connect(place).await.unwrap())
}

fn directory_in(parent: &Path) -> TempDir {
    tempfile::Builder::new().prefix("interval-queue-bench-").tempdir_in(parent).unwrap()
}
