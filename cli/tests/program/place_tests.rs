//! A state of its own for each test, and the program set up to use it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use interval_queue_test_support::{PostgresServer, RedisServer, command};
use serde_json::Value;
use tempfile::TempDir;

use crate::process::Process;

/// Where the store is, and a directory to work in. The queue is `mail`.
pub(crate) struct Backend {
    directory: TempDir,
    state: State,
}

enum State {
    File,
    /// In a directory of its own.
    Sqlite,
    /// Of files, for tasks, too.
    Directory,
    Redis(RedisServer),
    Postgres(PostgresServer),
}

/// What is left of a state that was away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// All of it.
    Everything,
    /// A server that was killed remembers nothing.
    Nothing,
}

impl Backend {
    pub(crate) fn file() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), state: State::File }
    }

    pub(crate) fn sqlite() -> Self {
        let place = Self { state: State::Sqlite, ..Self::file() };
        fs::create_dir(place.path("data")).unwrap();
        place
    }

    pub(crate) fn directory() -> Self {
        Self { state: State::Directory, ..Self::file() }
    }

    pub(crate) fn redis() -> Self {
        Self { state: State::Redis(RedisServer::start()), ..Self::file() }
    }

    pub(crate) fn postgres() -> Self {
        Self { state: State::Postgres(PostgresServer::start()), ..Self::file() }
    }

    /// Makes the store useless: a server is killed, a file is damaged, a directory is moved away.
    pub(crate) fn take_away(&mut self) {
        let (file, kept) = (self.state_file(), self.path("kept"));
        match &mut self.state {
            State::File => {
                fs::rename(&file, kept).unwrap();
                fs::write(file, "no record").unwrap();
            }
            State::Sqlite => fs::rename(self.path("data"), kept).unwrap(),
            State::Directory => fs::rename(self.path("jobs"), kept).unwrap(),
            State::Redis(server) => server.kill(),
            State::Postgres(server) => server.kill(),
        }
    }

    /// Ends that.
    pub(crate) fn bring_back(&mut self) -> Left {
        let (file, kept) = (self.state_file(), self.path("kept"));
        match &mut self.state {
            State::File => fs::rename(kept, file).unwrap(),
            State::Sqlite => fs::rename(kept, self.path("data")).unwrap(),
            State::Directory => fs::rename(kept, self.path("jobs")).unwrap(),
            State::Redis(server) => {
                server.start_again();
                return Left::Nothing;
            }
            State::Postgres(server) => server.start_again(),
        }
        Left::Everything
    }

    /// Whether a state that was taken away refuses connections.
    pub(crate) fn is_a_server(&self) -> bool {
        matches!(self.state, State::Redis(_) | State::Postgres(_))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn state_file(&self) -> PathBuf {
        self.path("queues.json")
    }

    pub(crate) fn url(&self) -> String {
        match &self.state {
            State::File => format!("file:{}", self.state_file().display()),
            State::Directory => format!("dir:{}", self.path("jobs").display()),
            State::Sqlite => format!("sqlite:{}", self.path("data/queues.db").display()),
            State::Redis(server) => server.url().to_owned(),
            State::Postgres(server) => server.url().to_owned(),
        }
    }

    /// What is in the directory, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        let names = fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<_> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A program that finds this state and the queue `mail` in its environment.
    pub(crate) fn program(&self, program: impl AsRef<Path>) -> Command {
        let mut command = command(program.as_ref());
        command
            .current_dir(self.directory.path())
            .env("INTERVAL_QUEUE_STORE", self.url())
            .env("INTERVAL_QUEUE_NAME", "mail")
            .env("IQ", env!("CARGO_BIN_EXE_interval-queue"))
            // Terminals of the tests know colours, whatever the tests are started from.
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR");
        command
    }

    /// The program `interval-queue`.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_interval-queue"));
        command.args(args);
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.spawn(args).finish()
    }

    /// Runs it to its good end. Returns what it wrote.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts it.
    pub(crate) fn spawn(&self, args: &[&str]) -> Process {
        Process::spawn(&mut self.command(args))
    }

    /// Starts a script in which `$IQ` is the program.
    pub(crate) fn shell(&self, script: &str) -> Process {
        Process::spawn(self.program("/bin/sh").args(["-c", script]))
    }

    /// `status --json`.
    pub(crate) fn status(&self) -> Value {
        serde_json::from_str(&self.ok(&["status", "--json"])).unwrap()
    }

    /// The shards in the record that wait for a ticket.
    pub(crate) fn waiting(&self) -> usize {
        let status = self.status();
        status["shards"].as_array().unwrap().iter().filter(|shard| shard["head"].is_u64()).count()
    }
}

/// Each of these functions as a test on every kind of state.
macro_rules! on_each_state {
    ($($test:ident),* $(,)?) => {
        mod json_file {
            $(#[test] fn $test() { super::$test(&mut crate::place_tests::Backend::file()); })*
        }
        mod sqlite {
            $(#[test] fn $test() { super::$test(&mut crate::place_tests::Backend::sqlite()); })*
        }
        mod postgres {
            $(
                #[test]
                #[ignore = "needs postgresql: scripts/test runs it"]
                fn $test() { super::$test(&mut crate::place_tests::Backend::postgres()); }
            )*
        }
        mod redis {
            $(
                #[test]
                #[ignore = "needs redis-server: scripts/test runs it"]
                fn $test() { super::$test(&mut crate::place_tests::Backend::redis()); }
            )*
        }
    };
}
pub(crate) use on_each_state;
