//! A state of its own for each test, and the program set up to use it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use interval_queue_test_support::RedisServer;
use serde_json::Value;
use tempfile::TempDir;

use crate::process::Process;

/// Where the state is, and a directory to work in. The queue is `mail`.
pub(crate) struct Place {
    directory: TempDir,
    pub(crate) redis: Option<RedisServer>,
}

impl Place {
    pub(crate) fn file() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), redis: None }
    }

    pub(crate) fn redis() -> Self {
        Self { redis: Some(RedisServer::start()), ..Self::file() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn state_file(&self) -> PathBuf {
        self.path("queues.json")
    }

    pub(crate) fn url(&self) -> String {
        match &self.redis {
            Some(redis) => redis.url().to_owned(),
            None => format!("file:{}", self.state_file().display()),
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
        let mut command = Command::new(program.as_ref());
        command
            .current_dir(self.directory.path())
            .env("INTERVAL_QUEUE_STATE", self.url())
            .env("INTERVAL_QUEUE_NAME", "mail")
            .env("IQ", env!("CARGO_BIN_EXE_interval-queue"));
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

/// Each of these functions as a test on a JSON file and as one on a Redis.
macro_rules! on_each_state {
    ($($test:ident),* $(,)?) => {
        mod json_file {
            $(#[test] fn $test() { super::$test(&mut crate::place::Place::file()); })*
        }
        mod redis {
            $(
                #[test]
                #[ignore = "needs redis-server: scripts/test runs it"]
                fn $test() { super::$test(&mut crate::place::Place::redis()); }
            )*
        }
    };
}
pub(crate) use on_each_state;
