//! Where the state of a scene is, and what the test sees of it from outside.

use std::{ffi::OsString, fs, path::PathBuf};

use interval_queue::{
    Record, connect,
    contract::{Command, QueueName},
};
use interval_queue_test_support::RedisServer;
use tempfile::TempDir;

/// The queue of all scenes.
pub const QUEUE: &str = "test";

/// A place for the state.
#[derive(Debug)]
pub enum Place {
    File(TempDir),
    Redis(Box<RedisServer>),
}

impl Place {
    pub fn file() -> Self {
        Self::File(tempfile::tempdir().unwrap())
    }

    pub fn redis() -> Self {
        Self::Redis(Box::new(RedisServer::start()))
    }

    pub fn url(&self) -> String {
        match self {
            Self::File(_) => format!("file:{}", self.path().display()),
            Self::Redis(server) => server.url().to_owned(),
        }
    }

    /// The path of the state file.
    pub fn path(&self) -> PathBuf {
        match self {
            Self::File(directory) => directory.path().join("state.json"),
            Self::Redis(_) => panic!("this scene has no file"),
        }
    }

    /// The server.
    pub fn server(&mut self) -> &mut RedisServer {
        match self {
            Self::File(_) => panic!("this scene has no server"),
            Self::Redis(server) => server,
        }
    }

    /// The record as it is.
    pub fn record(&self) -> Record {
        let reply = block_on(async {
            let state = connect(&self.url()).await.unwrap();
            state.apply(&QueueName::new(QUEUE).unwrap(), Command::Read).await.unwrap()
        });
        reply.read().unwrap().expect("the record is there").record
    }

    /// Whether somebody holds the lock of the state file and does not give it back.
    pub fn is_locked(&self) -> bool {
        match self {
            // Opening takes the lock.
            Self::File(_) => block_on(connect(&format!("{}?lock_timeout=200ms", self.url()))).is_err(),
            Self::Redis(_) => false,
        }
    }

    /// Asserts that nothing lies beside the state file but its lock and, while a writer is at work or has been killed, the
    /// file that it writes.
    pub fn assert_no_litter(&self, writers: bool) {
        let Self::File(directory) = self else { return };
        let entries = fs::read_dir(directory.path()).unwrap();
        let mut names: Vec<OsString> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        let temporary = names.pop_if(|name| *name == "state.json.tmp");
        assert!(writers || temporary.is_none(), "a temporary file is left");
        assert_eq!(names, ["state.json", "state.json.lock"]);
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
