//! What a user may say.

use std::{env, path::PathBuf};

use clap::{Parser, Subcommand};

use crate::{
    contender::{StateKind, Threads},
    idle, local, long_line, member, worker,
};

/// Measures how accurately and how cheaply processes keep one pace.
///
/// Starts real processes on real states, offers them jobs that do nothing, and tells from the instants at
/// which the jobs start: the rate as a part of the nominal one, the gaps between starts, starts in the wrong
/// order, how late after their slots jobs start, commands on the state and processor time per job, and what a
/// killed process costs.
///
/// Everything runs several times, in turns, so that a change of the machine's mood hits all alike. Shown are
/// medians; the single runs are in the JSON file.
#[derive(Debug, Parser)]
#[command(name = "cargo bench --bench pace --", bin_name = "cargo bench --bench pace --")]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true, max_term_width = 110)]
#[command(after_help = "Examples:
  cargo bench --bench pace                                        all of it: half an hour
  cargo bench --bench pace -- --peers                             with other libraries: an hour
  cargo bench --bench pace -- --quick                             a first impression: two minutes
  cargo bench --bench pace -- --list                              what there is
  cargo bench --bench pace -- --only 'saturated 10ms'             on all states
  cargo bench --bench pace -- --store redis --only killed --repeats 3")]
pub(crate) struct Arguments {
    /// Run only what has all words of this in its name; see --list. Given several times: what fits one of
    /// them.
    #[arg(long, value_name = "WORDS")]
    pub(crate) only: Vec<String>,
    /// Run only on these stores. Default: all that are to be had.
    #[arg(long, value_name = "STORE", value_delimiter = ',')]
    pub(crate) store: Vec<StateKind>,
    /// How often each is run [default: 5, with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeats: Option<u32>,
    /// Also measure other libraries: those of node and Python, which it installs into
    /// target/benchmarks/peers, and two limiters for one process.
    #[arg(long)]
    pub(crate) peers: bool,
    /// A tenth of the jobs, once: to see that it works, not to be quoted.
    #[arg(long)]
    pub(crate) quick: bool,
    /// The runtime of this library's processes.
    #[arg(long, default_value = "single")]
    pub(crate) threads: Threads,
    /// Where to store all that was found, as JSON.
    #[arg(long, alias = "out", value_name = "FILE", default_value = "target/benchmarks/pace.json")]
    pub(crate) json: PathBuf,
    /// Run nothing: make docs/benchmarks.md, its pictures and docs/benchmarks.json of what --json wrote to
    /// this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) render: Option<PathBuf>,
    /// With --render: the part of the page on stored tasks, as the benchmark `tasks` has printed it. Default: what
    /// that file had.
    #[arg(long, value_name = "FILE", requires = "render")]
    pub(crate) tasks: Option<PathBuf>,
    /// Say what would run, and run nothing.
    #[arg(long)]
    pub(crate) list: bool,
    /// Given by `cargo bench`, but not by `cargo test`.
    #[arg(long, hide = true)]
    bench: bool,
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

impl Arguments {
    /// What the command line says. `cargo test --benches` says nothing: that only shows that the benchmark
    /// works.
    pub(crate) fn read() -> Self {
        match env::args().len() {
            1 => Self::parse_from(["pace", "--quick", "--only", "saturated memory 10ms"]),
            _ => Self::parse(),
        }
    }
}

/// What the benchmark starts itself as.
#[derive(Debug, Subcommand)]
pub(crate) enum Role {
    /// A worker process.
    #[command(hide = true)]
    Worker(worker::Arguments),
    /// A process with nothing to do.
    #[command(hide = true)]
    Idle(idle::Arguments),
    /// The process of a limiter that knows no other.
    #[command(hide = true)]
    Local(local::Arguments),
    /// A process with many shards.
    #[command(hide = true)]
    Member(member::Arguments),
    /// A process with many jobs.
    #[command(hide = true)]
    Line(long_line::Arguments),
}
