//! What stored tasks cost: how many a second go through four processes, what a step costs on a table with a million
//! tasks, how soon an idle worker starts what is added, what counting costs, and what memory a worker has.
//!
//!     cargo bench --quiet --bench tasks > docs/tasks-speed.md      all of it, five times, beside other libraries
//!     cargo bench --bench tasks -- --ours              without other libraries
//!     cargo bench --bench tasks -- --only speed        only what has this in its name: speed, depth, pickup
//!     cargo bench --bench tasks -- --quick             a fiftieth of the tasks, once, to see that it works

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that fails says so")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

mod crew;
mod depth;
#[path = "../pace/figures.rs"]
#[allow(dead_code, reason = "it uses some of them")]
mod figures;
#[path = "../pace/install.rs"]
#[allow(dead_code, reason = "it uses some of it")]
mod install;
#[path = "../pace/machine.rs"]
#[allow(dead_code, reason = "it uses some of it")]
mod machine;
mod peers;
mod pickup;
mod place;
#[path = "../keyed/process.rs"]
#[allow(dead_code, reason = "it uses some of them")]
mod process;
mod speed;

/// What `machine.rs` gives.
mod report {
    /// Where it ran.
    pub(crate) struct Machine {
        pub(crate) processor: String,
        pub(crate) cores: u32,
        pub(crate) memory_gib: u32,
        pub(crate) system: String,
        pub(crate) disk: String,
    }
}

/// What `machine.rs` asks for.
mod state {
    /// The file system of the databases.
    pub(crate) fn disk() -> Option<String> {
        crate::machine::file_system(&std::env::temp_dir())
    }
}

/// What `process.rs` gives.
mod case {
    /// What a process did for a while.
    #[derive(Debug)]
    #[allow(dead_code, reason = "not measured here")]
    pub(crate) struct Doing {
        pub(crate) seconds: f64,
        pub(crate) wakes: u64,
        pub(crate) cpu: f64,
    }
}

use std::{env, error::Error};

use clap::{Parser, Subcommand};

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// Measures stored tasks on an SQLite database in a temporary directory.
///
/// Shown are medians of several runs, everything once before anything again.
#[derive(Debug, Parser)]
#[command(name = "cargo bench --bench tasks --", bin_name = "cargo bench --bench tasks --")]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true, max_term_width = 110)]
struct Arguments {
    /// How often each is run [default: 5, with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Only what has this in its name.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Leave out other libraries. The first run with them installs them into target/benchmarks/peers.
    #[arg(long)]
    ours: bool,
    /// A fiftieth of the tasks, once: to see that it works, not to be quoted.
    #[arg(long)]
    quick: bool,
    /// Given by `cargo bench`, but not by `cargo test`.
    #[arg(long, hide = true)]
    bench: bool,
    #[command(subcommand)]
    role: Option<Role>,
}

/// What the benchmark starts itself as.
#[derive(Debug, Subcommand)]
enum Role {
    /// A process that adds, leases and settles.
    #[command(hide = true)]
    Speed(crew::Crew),
    /// A process with an idle worker.
    #[command(hide = true)]
    Pickup(pickup::Idle),
}

fn main() {
    let arguments = match env::args().len() {
        // `cargo test --benches` says nothing: that only shows that the benchmark works.
        1 => Arguments::parse_from(["tasks", "--quick", "--ours"]),
        _ => Arguments::parse(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        match arguments.role {
            Some(Role::Speed(crew)) => crew.work().await,
            Some(Role::Pickup(idle)) => idle.work().await,
            None => measure(&arguments).await,
        }
    });
    // Nobody waits for what is still to be closed.
    runtime.shutdown_background();
}

async fn measure(arguments: &Arguments) {
    let runs = arguments.runs.unwrap_or(if arguments.quick { 1 } else { 5 });
    let share = if arguments.quick { 50 } else { 1 };
    let is_wanted = |name: &str| arguments.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    head(runs, share);
    if is_wanted("speed") {
        speed::measure(runs, share, !arguments.ours).await;
    }
    if is_wanted("depth") {
        depth::measure(runs, share).await;
    }
    if is_wanted("pickup") {
        pickup::measure(runs, share).await;
    }
}

/// What the page begins with.
fn head(runs: u32, share: usize) {
    let report::Machine { processor, cores, memory_gib, system, disk } = machine::this();
    println!("# What stored tasks cost\n");
    println!(
        "`cargo bench --quiet --bench tasks > docs/tasks-speed.md` makes this page again, on the machine at hand, \
         which should be idle. Medians of {runs}, everything once before anything again.\n"
    );
    if share > 1 {
        println!("This was a quick run, with 1/{share} of the tasks: nothing to be quoted.\n");
    }
    println!("{processor}, {cores} cores, {memory_gib} GiB of memory; {system}; databases on {disk}.\n");
}
