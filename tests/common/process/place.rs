//! Where the state of a scene is, and what the test sees of it from outside.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use interval_queue::{
    Record, connect,
    contract::{Command, QueueName},
};
#[cfg(target_os = "linux")]
use interval_queue_test_support::SmallDisk;
use interval_queue_test_support::{Proxy, RedisServer};
use tempfile::TempDir;

/// The queue of all scenes.
pub const QUEUE: &str = "test";

/// A place for the state.
#[derive(Debug)]
pub struct Place {
    /// Where workers find it.
    pub url: String,
    home: Home,
}

#[derive(Debug)]
enum Home {
    Directory(TempDir),
    #[cfg(target_os = "linux")]
    Disk(SmallDisk),
    Servers(Vec<RedisServer>, Option<Proxy>),
}

impl Place {
    pub fn file() -> Self {
        Self::in_home(Home::Directory(tempfile::tempdir().unwrap()))
    }

    /// A file on a disk that can be filled. None if this user may not mount one.
    #[cfg(target_os = "linux")]
    pub fn small_disk() -> Option<Self> {
        SmallDisk::is_possible().then(|| Self::in_home(Home::Disk(SmallDisk::mount())))
    }

    fn in_home(home: Home) -> Self {
        let mut place = Self { url: String::new(), home };
        place.url = format!("file:{}", place.path().display());
        place
    }

    pub fn redis() -> Self {
        Self::servers(vec![RedisServer::start()])
    }

    /// A server that forgets nothing when it is killed.
    pub fn lasting_redis() -> Self {
        Self::servers(vec![RedisServer::with_args(&["--appendonly", "yes"])])
    }

    /// A server behind a network that can be spoilt.
    pub fn redis_far_away() -> Self {
        let server = RedisServer::start();
        let proxy = Proxy::before(server.port());
        let url = format!("redis://127.0.0.1:{}", proxy.port());
        Self { url, home: Home::Servers(vec![server], Some(proxy)) }
    }

    /// A master, its replica, and a sentinel that watches them.
    pub fn redis_with_sentinel() -> Self {
        let master = RedisServer::start();
        let replica = RedisServer::replica_of(&master);
        let sentinel = RedisServer::sentinel_of(&master);
        Self { url: sentinel.url().to_owned(), home: Home::Servers(vec![master, replica, sentinel], None) }
    }

    fn servers(servers: Vec<RedisServer>) -> Self {
        Self { url: servers[0].url().to_owned(), home: Home::Servers(servers, None) }
    }

    /// The kind of state, as people call it.
    pub fn kind(&self) -> &'static str {
        if matches!(self.home, Home::Servers(..)) { "Redis" } else { "JSON file" }
    }

    fn directory(&self) -> Option<&Path> {
        match &self.home {
            Home::Directory(directory) => Some(directory.path()),
            #[cfg(target_os = "linux")]
            Home::Disk(disk) => Some(disk.path()),
            Home::Servers(..) => None,
        }
    }

    /// The path of the state file.
    pub fn path(&self) -> PathBuf {
        self.directory().expect("this scene has a file").join("state.json")
    }

    #[cfg(target_os = "linux")]
    pub fn disk(&self) -> &SmallDisk {
        match &self.home {
            Home::Disk(disk) => disk,
            _ => panic!("this scene has no disk of its own"),
        }
    }

    /// All servers.
    pub fn all_servers(&mut self) -> &mut [RedisServer] {
        match &mut self.home {
            Home::Servers(servers, _) => servers,
            _ => panic!("this scene has no server"),
        }
    }

    /// The server.
    pub fn server(&mut self) -> &mut RedisServer {
        &mut self.all_servers()[0]
    }

    /// The network before the server.
    pub fn proxy(&self) -> &Proxy {
        match &self.home {
            Home::Servers(_, Some(proxy)) => proxy,
            _ => panic!("this scene has no proxy"),
        }
    }

    /// The record as it is.
    pub fn record(&self) -> Record {
        let reply = block_on(async {
            let state = connect(&self.url).await.unwrap();
            state.apply(&QueueName::new(QUEUE).unwrap(), Command::Read).await.unwrap()
        });
        reply.read().unwrap().expect("the record is there").record
    }

    /// Whether somebody holds the lock of the state file and does not give it back.
    pub fn is_locked(&self) -> bool {
        // Opening takes the lock.
        self.directory().is_some() && block_on(connect(&format!("{}?lock_timeout=200ms", self.url))).is_err()
    }

    /// Asserts that nothing lies beside the state file but its lock and, while a writer is at work or has been killed, the
    /// file that it writes.
    pub fn assert_no_litter(&self, writers: bool) {
        let Some(directory) = self.directory() else { return };
        let entries = fs::read_dir(directory).unwrap();
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
