//! Who is measured: this library, and what a user would pick instead.

use std::{collections::BTreeMap, env, io, process::Command};

use clap::ValueEnum;

use crate::{assignment::Assignment, scenario::Plan};

/// Somebody whose workers keep a pace together.
pub(crate) trait Contender {
    /// As it stands in the report.
    fn name(&self) -> &str;

    /// Brings what it needs, before its versions or commands are asked for.
    ///
    /// # Errors
    ///
    /// It cannot be had here.
    fn prepare(&self) -> io::Result<()> {
        Ok(())
    }

    /// Where its workers can keep what they share.
    fn states(&self) -> &[StateKind];

    /// The programs and libraries that it brings, with their versions.
    fn versions(&self) -> BTreeMap<String, String>;

    /// Whether it takes part in this. Called only for a plan on one of its [states](Self::states).
    fn takes_part(&self, plan: &Plan) -> bool;

    /// Whether the state knows when a worker counts as dead, as this library's records do.
    fn has_leases(&self) -> bool {
        false
    }

    /// The command that becomes worker `assignment.worker` of a run. Standard input and output are set by the
    /// crew; what the worker must do is told in [`crew`](crate::crew).
    ///
    /// # Errors
    ///
    /// What it needs is not here.
    fn command(&self, plan: &Plan, assignment: &Assignment) -> io::Result<Command>;
}

/// What workers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum)]
pub(crate) enum StateKind {
    /// A Redis of its own on a loopback port.
    Redis,
    /// A JSON file in memory.
    Tmpfs,
    /// A JSON file on the disk.
    Disk,
    /// The memory of one process.
    Memory,
    /// An SQLite file on the disk.
    Sqlite,
    /// A PostgreSQL of its own on a loopback port, which flushes to the disk.
    Postgres,
}

impl StateKind {
    /// As it stands in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Tmpfs => "file on tmpfs",
            Self::Disk => "file on disk",
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// The runtime on which this library's workers run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Threads {
    /// All on the one thread of a current-thread runtime.
    #[default]
    Single,
    /// A multi-thread runtime, with as many threads as there are cores.
    Multi,
}

/// This library: the benchmark runs itself again as its workers.
#[derive(Debug)]
pub(crate) struct Ours {
    /// The runtime of its workers where the plan does not ask for one.
    pub(crate) threads: Threads,
}

impl Contender for Ours {
    fn name(&self) -> &str {
        "interval-queue"
    }

    fn states(&self) -> &[StateKind] {
        use StateKind::{Disk, Memory, Postgres, Redis, Sqlite, Tmpfs};
        &[Redis, Tmpfs, Disk, Memory, Sqlite, Postgres]
    }

    fn versions(&self) -> BTreeMap<String, String> {
        BTreeMap::from([(self.name().to_owned(), env!("CARGO_PKG_VERSION").to_owned())])
    }

    fn takes_part(&self, _: &Plan) -> bool {
        true
    }

    fn has_leases(&self) -> bool {
        true
    }

    fn command(&self, plan: &Plan, assignment: &Assignment) -> io::Result<Command> {
        let mut command = Command::new(env::current_exe()?);
        command.arg("worker").args(assignment.arguments());
        if let Some(lease) = plan.lease {
            command.args(["--lease-ms", &lease.as_millis().to_string()]);
        }
        if self.threads == Threads::Multi {
            command.args(["--threads", "multi"]);
        }
        if let Some(keep) = plan.keep().to_possible_value() {
            command.args(["--keep", keep.get_name()]);
        }
        Ok(command)
    }
}
