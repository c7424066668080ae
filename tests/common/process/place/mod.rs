//! Where the state of a scene is, and what the test sees of it from outside.

mod files;
mod servers;

use interval_queue::{
    Record, connect,
    contract::{Change, Command, MaxRunning, Memory, QueueName},
};
#[cfg(target_os = "linux")]
use interval_queue_test_support::SmallDisk;
use interval_queue_test_support::{PostgresServer, Proxy, RedisServer};
pub use servers::Server;
use tempfile::TempDir;

/// The queue of all scenes.
pub const QUEUE: &str = "test";

/// A place for the state.
#[derive(Debug)]
pub struct Backend {
    /// Where workers find it.
    pub url: String,
    home: Home,
}

#[derive(Debug)]
enum Home {
    Directory(TempDir),
    #[cfg(target_os = "linux")]
    Disk(SmallDisk),
    Redis(Vec<RedisServer>, Option<Proxy>),
    Postgres(Vec<PostgresServer>, Option<Proxy>),
}

impl Backend {
    /// The kind of state, as people call it.
    pub fn kind(&self) -> &'static str {
        match self.home {
            Home::Redis(..) => "Redis",
            Home::Postgres(..) => "PostgreSQL",
            _ if self.is_sqlite() => "SQLite",
            _ if self.is_directory() => "directory",
            _ => "JSON file",
        }
    }

    /// Adds a parameter to the address, as `timeout=400ms`.
    pub fn add_parameter(&mut self, parameter: &str) {
        self.url = self.url_with(parameter);
    }

    fn url_with(&self, parameter: &str) -> String {
        let sign = if self.url.contains('?') { '&' } else { '?' };
        format!("{}{sign}{parameter}", self.url)
    }

    /// The record as it is.
    pub fn record(&self) -> Record {
        let reply = block_on(async {
            let state = connect(&self.url).await.unwrap().rates().await.unwrap();
            state.apply(&queue(), Command::Read).await.unwrap()
        });
        reply.read().unwrap().expect("the record is there").record
    }

    /// Whether somebody holds the lock of the state and does not give it back.
    pub fn is_locked(&self) -> bool {
        let patience = match self.home {
            // Its commands never wait for each other.
            Home::Redis(..) => return false,
            // Of which half is for the lock.
            Home::Postgres(..) => "timeout=400ms",
            _ => "lock_timeout=200ms",
        };
        let url = self.url_with(patience);
        let nothing = Change::Set { rates: None, max_running: MaxRunning::Keep };
        let change = Command::Change(nothing, Memory::default());
        let changed = block_on(async {
            let state = connect(&url).await.ok()?.rates().await.ok()?;
            state.apply(&queue(), change).await.ok()
        });
        changed.is_none()
    }
}

fn queue() -> QueueName {
    QueueName::new(QUEUE).unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
