//! Where a state can live while it is measured.

use std::{env, path::Path, process::Command, sync::Arc};

use interval_queue_contract::SharedState;
use interval_queue_json_file::JsonFileState;
use interval_queue_memory::MemoryState;
use interval_queue_redis::RedisState;
use interval_queue_test_support::RedisServer;
use tempfile::TempDir;

/// A file system in memory, where there is one.
const TMPFS: &str = "/dev/shm";

/// A place with a state of its own, gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) name: &'static str,
    store: Store,
}

#[derive(Debug)]
enum Store {
    Memory,
    File(TempDir),
    Redis(RedisServer),
}

impl Place {
    /// All there are on this machine. Says which are left out.
    pub(crate) fn all() -> Vec<Self> {
        [Some(Self::memory()), Self::tmpfs(), Some(Self::disk()), Self::redis()]
            .into_iter()
            .flatten()
            .collect()
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

    /// Where other processes find it; none: they cannot.
    pub(crate) fn address(&self) -> Option<String> {
        match &self.store {
            Store::Memory => None,
            Store::File(directory) => {
                Some(format!("file:{}", directory.path().join("queues.json").display()))
            }
            Store::Redis(server) => Some(server.url().to_owned()),
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

/// The state at the address of a place.
pub(crate) async fn open(address: &str) -> Arc<dyn SharedState> {
    match address.strip_prefix("file:") {
        Some(path) => Arc::new(JsonFileState::open(path).await.unwrap()),
        None => Arc::new(RedisState::connect(address).await.unwrap()),
    }
}

fn directory_in(parent: &Path) -> TempDir {
    tempfile::Builder::new().prefix("interval-queue-bench-").tempdir_in(parent).unwrap()
}
