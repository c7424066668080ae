//! What is measured, each in a process of its own: memory that one has freed would hide what the next one
//! takes.

use std::{env, process::Command, time::Duration};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::common::places::Backend;

/// Where the state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Memory,
    Redis,
    Tmpfs,
    Disk,
}

/// So many queues on one state.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    pub(crate) queues: u32,
    /// The interval of each of them.
    pub(crate) every: Duration,
    pub(crate) quick: bool,
}

/// What was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Found {
    /// Seconds until all were open.
    pub(crate) opened: f64,
    /// Bytes of this process for one that is idle, and for one that has started a job and in which another
    /// waits.
    pub(crate) idle: f64,
    pub(crate) waiting: f64,
    /// What the process did while all were idle, and while a job waited in each.
    pub(crate) quiet: Doing,
    pub(crate) patient: Doing,
    /// Seconds until a job had started in each, if all are added in one instant.
    pub(crate) burst: f64,
    /// Seconds until all were shut down that had a job waiting.
    pub(crate) shut_down: f64,
    /// Of the process, and of the server's clients.
    pub(crate) descriptors: usize,
    pub(crate) connections: Option<usize>,
    /// Failures of which the application was told, in all that was done before the pace was measured, and
    /// while it was.
    pub(crate) failures: u64,
    pub(crate) failures_at_pace: u64,
    /// Starts as a part of what the interval allows, while all have work.
    pub(crate) rate: f64,
    /// Between two starts of one queue, as parts of its interval.
    pub(crate) gaps: [f64; 4],
    /// Of the process and of the server, as parts of one processor.
    pub(crate) cpu: f64,
    pub(crate) server_cpu: Option<f64>,
}

/// What a process did for a while.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Doing {
    pub(crate) seconds: f64,
    /// How often one of its threads woke, without the one that looks.
    pub(crate) wakes: u64,
    /// Seconds of the processor.
    pub(crate) cpu: f64,
}

impl Kind {
    /// A fresh state; none: it is not to be had here.
    pub(crate) fn place(self) -> Option<Backend> {
        match self {
            Self::Memory => Some(Backend::memory()),
            Self::Redis => Backend::redis(),
            Self::Tmpfs => Backend::tmpfs(),
            Self::Disk => Some(Backend::disk()),
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

impl Case {
    /// All there are.
    pub(crate) fn all(quick: bool) -> impl Iterator<Item = Self> {
        let all = [
            (Kind::Memory, 10_000, 1),
            (Kind::Redis, 1_000, 1),
            (Kind::Redis, 10_000, 1),
            (Kind::Redis, 10_000, 10),
            (Kind::Tmpfs, 100, 1),
            (Kind::Tmpfs, 1_000, 10),
            (Kind::Disk, 100, 1),
            (Kind::Disk, 1_000, 10),
        ];
        all.into_iter().map(move |(kind, queues, seconds)| Self {
            kind,
            queues: if quick { queues / 10 } else { queues },
            every: Duration::from_secs(if quick { 1 } else { seconds }),
            quick,
        })
    }

    pub(crate) fn name(&self) -> String {
        format!("{} {}, one per {}", self.kind.name(), self.queues, humantime::format_duration(self.every))
    }

    /// Measures it in a process of its own. None: it cannot be measured here, and why was said.
    pub(crate) fn run(&self) -> Option<Found> {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--here", "--store", &self.kind.name(), "--queues", &self.queues.to_string()]);
        command.args(["--every", &humantime::format_duration(self.every).to_string()]);
        command.args(self.quick.then_some("--quick"));
        let output = command.stderr(std::process::Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "{}: {}", self.name(), output.status);
        serde_json::from_slice(&output.stdout).unwrap()
    }
}
