//! The states that are measured: each run gets a fresh one, and nothing of it is left.

use std::{
    env, fs, io,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use interval_queue_test_support::{PostgresServer, Proxy, RedisServer};
use tempfile::TempDir;

use crate::{Failure, contender::StateKind, machine::file_system};

/// Where Linux keeps files in memory.
const TMPFS: &str = "/dev/shm";
/// Beside what is built: on a disk, as far as that is.
const DISK: &str = env!("CARGO_TARGET_TMPDIR");

/// A state that workers can share; gone when it is dropped.
#[derive(Debug)]
pub(crate) struct State {
    url: String,
    /// As it would be without a delay.
    direct_url: String,
    redis: Option<RedisServer>,
    _postgres: Option<PostgresServer>,
    _proxy: Option<Proxy>,
    _directory: Option<TempDir>,
}

impl State {
    /// A fresh one. A round trip to it takes so much longer than it would, if it is on a network.
    pub(crate) fn start(kind: StateKind, round_trip: Duration) -> Result<Self, Failure> {
        match kind {
            StateKind::Redis => Ok(Self::redis(round_trip)),
            StateKind::Postgres => Ok(Self::postgres(round_trip)),
            StateKind::Tmpfs => Self::file(Path::new(TMPFS), "file", "pace.json"),
            StateKind::Disk => Self::file(Path::new(DISK), "file", "pace.json"),
            StateKind::Sqlite => Self::file(Path::new(DISK), "sqlite", "pace.sqlite"),
            StateKind::Memory => Ok(Self::at("memory:".into())),
        }
    }

    fn redis(round_trip: Duration) -> Self {
        let server = RedisServer::start();
        let at = Self::behind(server.port(), round_trip, |port| format!("redis://127.0.0.1:{port}/"));
        Self { redis: Some(server), ..at }
    }

    fn postgres(round_trip: Duration) -> Self {
        let server = PostgresServer::with_settings(&[("fsync", "on")]);
        let url = |port| format!("postgres://postgres@127.0.0.1:{port}/postgres");
        let at = Self::behind(server.port(), round_trip, url);
        Self { _postgres: Some(server), ..at }
    }

    /// A server on this port, with a network before it if a round trip takes longer.
    fn behind(port: u16, round_trip: Duration, url: impl Fn(u16) -> String) -> Self {
        let proxy = (!round_trip.is_zero()).then(|| {
            let proxy = Proxy::before(port);
            proxy.delay(round_trip / 2, round_trip / 2);
            proxy
        });
        let near = proxy.as_ref().map_or(port, Proxy::port);
        Self { direct_url: url(port), _proxy: proxy, ..Self::at(url(near)) }
    }

    fn file(parent: &Path, scheme: &str, name: &str) -> Result<Self, Failure> {
        let directory = tempfile::Builder::new().prefix("interval-queue-pace-").tempdir_in(parent)?;
        let url = format!("{scheme}:{}", directory.path().join(name).display());
        Ok(Self { _directory: Some(directory), ..Self::at(url) })
    }

    fn at(url: String) -> Self {
        Self { direct_url: url.clone(), url, redis: None, _postgres: None, _proxy: None, _directory: None }
    }

    /// Where workers find it.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The same without a delay.
    pub(crate) fn direct_url(&self) -> &str {
        &self.direct_url
    }

    /// What its server has used of the processor, in microseconds; none: it has no server, or one that does
    /// not say.
    pub(crate) fn server_cpu(&self) -> Option<f64> {
        let lines = self.redis.as_ref()?.command(&["INFO", "CPU"]).concat();
        let used = |name: &str| -> Option<f64> {
            lines.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
        };
        Some((used("used_cpu_sys:")? + used("used_cpu_user:")?) * 1e6)
    }

    /// How large all is that it keeps; none: nobody knows.
    pub(crate) fn record_bytes(&self) -> Option<u64> {
        if let Some(path) = self.url.strip_prefix("file:") {
            return fs::metadata(path).ok().map(|file| file.len());
        }
        let server = self.redis.as_ref()?;
        let size = |key: &String| -> Option<u64> {
            server.command(&["MEMORY", "USAGE", key, "SAMPLES", "0"]).concat().parse().ok()
        };
        server.command(&["KEYS", "*"]).iter().map(size).sum()
    }
}

/// A directory for what workers write down: in memory if that is to be had, so that a disk does not disturb
/// them.
pub(crate) fn directory_for_notes() -> io::Result<TempDir> {
    let parent = if is_tmpfs() { TMPFS.into() } else { env::temp_dir() };
    tempfile::Builder::new().prefix("interval-queue-notes-").tempdir_in(parent)
}

/// Why a state cannot be had here; none: it can.
pub(crate) fn missing(kind: StateKind) -> Option<String> {
    match kind {
        StateKind::Redis => {
            let program = redis_program();
            let seen = Command::new(&program).arg("--version").stdout(Stdio::null()).status();
            seen.err().map(|error| {
                format!("{program} cannot be run ({error}): install it, or name another in INTERVAL_QUEUE_REDIS_SERVER")
            })
        }
        StateKind::Postgres => (!PostgresServer::is_possible()).then(|| {
            "its programs are not here: install it, or name their directory in INTERVAL_QUEUE_POSTGRES_BIN".to_owned()
        }),
        StateKind::Tmpfs => (!is_tmpfs()).then(|| format!("{TMPFS} is not a file system in memory")),
        StateKind::Disk | StateKind::Memory | StateKind::Sqlite => None,
    }
}

/// The server that is measured.
pub(crate) fn redis_program() -> String {
    env::var("INTERVAL_QUEUE_REDIS_SERVER").unwrap_or_else(|_| "redis-server".into())
}

fn is_tmpfs() -> bool {
    file_system(Path::new(TMPFS)).as_deref() == Some("tmpfs")
}

/// The file system of the disk on which files are measured.
pub(crate) fn disk() -> Option<String> {
    file_system(Path::new(DISK))
}
