//! Where tasks are stored while they are measured: a directory, a database, a server of its own.

use std::{env, process::Command, sync::Arc};

use clap::ValueEnum;
use interval_queue::connect;
use interval_queue_test_support::{PostgresServer, RedisServer};
use tempfile::TempDir;

use crate::server::Server;

/// Differences from the settings of the tests: it syncs, and has the memory of an installed server.
const POSTGRES: [(&str, &str); 3] =
    [("fsync", "on"), ("shared_buffers", "128MB"), ("max_connections", "200")];

/// How long a command may take: on a busy machine one with many tasks takes long.
const PATIENCE: &str = "60s";

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Directory,
    Sqlite,
    Redis,
    Postgres,
}

/// A kind of store, and whether what was answered survives a crash of the host. Redis flushes each second at best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) kind: Kind,
    pub(crate) is_full: bool,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Directory, Self::Sqlite, Self::Redis, Self::Postgres];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Directory => "Directory",
            Self::Sqlite => "SQLite",
            Self::Redis => "Redis",
            Self::Postgres => "PostgreSQL",
        }
    }

    /// Why there is none; none: there is one.
    fn missing(self) -> Option<&'static str> {
        match self {
            Self::Redis if Command::new(redis_program()).arg("--version").output().is_err() => {
                Some("redis-server is not here")
            }
            Self::Postgres if !PostgresServer::is_possible() => {
                Some("the programs of PostgreSQL are not here")
            }
            _ => None,
        }
    }
}

fn redis_program() -> String {
    env::var("INTERVAL_QUEUE_REDIS_SERVER").unwrap_or_else(|_| "redis-server".into())
}

impl Setting {
    pub(crate) fn durability(self) -> &'static str {
        match (self.kind, self.is_full) {
            (Kind::Directory, false) => "fsync never",
            (Kind::Directory, true) => "fsync always",
            (Kind::Sqlite, false) => "relaxed",
            (Kind::Sqlite, true) => "full",
            (Kind::Redis, false) => "no AOF",
            (Kind::Redis, true) => "AOF everysec",
            (Kind::Postgres, false) => "commit off",
            (Kind::Postgres, true) => "commit on",
        }
    }
}

/// Makes places.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// One for all of them, since it takes a second to start; each place has a database of its own.
    postgres: Option<Arc<PostgresServer>>,
    count: u32,
    /// Removed at the end of all: on some file systems it is slow to create files for half a minute after many were
    /// removed.
    directories: Vec<TempDir>,
}

/// A place that nobody has used before.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) setting: Setting,
    /// Where a queue finds it.
    pub(crate) url: String,
    /// Where other libraries find it.
    pub(crate) bare: String,
    pub(crate) server: Server,
}

impl Places {
    /// A fresh place.
    pub(crate) fn make(&mut self, setting: Setting) -> Place {
        let Setting { kind, is_full } = setting;
        let place = |url, bare, server| Place { setting, url, bare, server };
        match kind {
            Kind::Directory | Kind::Sqlite => {
                let parent = env!("CARGO_TARGET_TMPDIR");
                let directory = tempfile::Builder::new().prefix("interval-queue-tasks-").tempdir_in(parent);
                let directory = directory.unwrap();
                let bare = directory.path().join("tasks").display().to_string();
                self.directories.push(directory);
                let url = match (kind, is_full) {
                    (Kind::Directory, false) => format!("dir:{bare}?fsync=never&lock_timeout={PATIENCE}"),
                    (Kind::Directory, true) => format!("dir:{bare}?fsync=always&lock_timeout={PATIENCE}"),
                    (_, false) => format!("sqlite:{bare}?durability=relaxed&lock_timeout={PATIENCE}"),
                    (_, true) => format!("sqlite:{bare}?durability=full&lock_timeout={PATIENCE}"),
                };
                place(url, bare, Server::None)
            }
            Kind::Redis => {
                let args: &[&str] =
                    if is_full { &["--appendonly", "yes", "--appendfsync", "everysec"] } else { &[] };
                let server = RedisServer::with_args(args);
                let bare = server.url().to_owned();
                place(format!("{bare}?timeout={PATIENCE}"), bare, Server::Redis(server))
            }
            Kind::Postgres => {
                let server =
                    self.postgres.get_or_insert_with(|| PostgresServer::with_settings(&POSTGRES).into());
                self.count += 1;
                let name = format!("tasks_{}", self.count);
                let commit = if is_full { "on" } else { "off" };
                server.psql(&format!("CREATE DATABASE {name}"));
                server.psql(&format!("ALTER DATABASE {name} SET synchronous_commit = {commit}"));
                let bare = format!("{}/{name}", server.url().trim_end_matches("/postgres"));
                let durability = if is_full { "full" } else { "relaxed" };
                let url = format!("{bare}?durability={durability}&timeout={PATIENCE}");
                place(url, bare, Server::Postgres(server.clone(), name))
            }
        }
    }

    /// The settings of these stores, with both durabilities or the faster one. Prints which stores are left out.
    pub(crate) async fn settings(&mut self, kinds: &[Kind], both: bool) -> Vec<Setting> {
        let mut settings = Vec::new();
        for &kind in kinds {
            let setting = |is_full| Setting { kind, is_full };
            let why = match kind.missing() {
                Some(why) => Some(why.to_owned()),
                None => self.refusal(setting(false)).await,
            };
            match why {
                None if both => settings.extend([false, true].map(setting)),
                None => settings.push(setting(false)),
                Some(why) => {
                    eprintln!("{} is left out: {why}", kind.name());
                }
            }
        }
        settings
    }

    /// Why the store has no tasks; none: it has.
    async fn refusal(&mut self, setting: Setting) -> Option<String> {
        let place = self.make(setting);
        let tasks = async { connect(&place.url).await?.tasks().await };
        tasks.await.err().map(|error| error.to_string())
    }
}
