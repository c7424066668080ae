//! What stored tasks cost, on every store and beside other libraries.
//!
//!     cargo bench --quiet --bench tasks                    ten minutes
//!     cargo bench --quiet --bench tasks -- --peers         beside other libraries
//!     cargo bench --bench tasks -- --only SQLite           only what has this in its name
//!     cargo bench --bench tasks -- --quick                 to see that it works

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that fails says so")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

mod adds;
mod backlog;
mod burn;
mod case;
#[path = "../pace/clock.rs"]
#[allow(dead_code, reason = "it uses some of it")]
mod clock;
mod degraded;
#[path = "../pace/figures.rs"]
#[allow(dead_code, reason = "it uses some of them")]
mod figures;
mod hand;
#[path = "../pace/install.rs"]
mod install;
#[path = "../pace/machine.rs"]
#[allow(dead_code, reason = "it uses some of it")]
mod machine;
mod open_loop;
mod page;
mod place;
mod plan;
mod roles;
mod server;
mod steady;
#[path = "../pace/document/table.rs"]
mod table;
mod tally;
mod task_contender;
mod task_crew;
mod task_peers;

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
        crate::machine::file_system(env!("CARGO_TARGET_TMPDIR").as_ref())
    }
}

use std::{env, error::Error, time::Duration};

use clap::{Parser, Subcommand};

use crate::{case::Scale, place::Places};

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// How long something is measured.
const TIME: Duration = Duration::from_millis(700);
const QUICK_TIME: Duration = Duration::from_millis(100);
/// The part of the tasks that a quick run has.
const QUICK_SHARE: usize = 100;

/// Measures stored tasks: on a directory, on SQLite, and on servers of Redis and PostgreSQL that it starts itself.
///
/// Shown are medians of several runs, everything once before anything again.
#[derive(Debug, Parser)]
#[command(name = "cargo bench --bench tasks --", bin_name = "cargo bench --bench tasks --")]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true, max_term_width = 110)]
struct Arguments {
    /// How often each is run [default: 3, with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Only what has this in its name: a store, a part, a durability or a library, as the page calls them.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Also other libraries. The first run installs them into target/benchmarks/peers.
    #[arg(long)]
    peers: bool,
    /// How long it may take at most to fill a store with a million tasks: what is not there by then is left out.
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    fill: u64,
    /// Little of everything, once: to see that it works, not to be quoted.
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
    #[command(hide = true)]
    Adder(roles::Adder),
    #[command(hide = true)]
    Stepper(roles::Stepper),
    #[command(hide = true)]
    Runner(roles::Runner),
}

fn main() {
    let arguments = match env::args().len() {
        // `cargo test --benches` says nothing: that only shows that the benchmark works, and there may be no server.
        1 => Arguments::parse_from(["tasks", "--quick", "--only", "SQLite"]),
        _ => Arguments::parse(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        match arguments.role {
            Some(Role::Adder(adder)) => adder.work().await,
            Some(Role::Stepper(stepper)) => stepper.work().await,
            Some(Role::Runner(runner)) => runner.work().await,
            None => measure(&arguments).await,
        }
    });
    // Nobody waits for what is still to be closed.
    runtime.shutdown_background();
}

async fn measure(arguments: &Arguments) {
    let quick = arguments.quick;
    let runs = arguments.runs.unwrap_or(if quick { 1 } else { 3 });
    let scale = Scale {
        share: if quick { QUICK_SHARE } else { 1 },
        time: if quick { QUICK_TIME } else { TIME },
        fill: Duration::from_secs(arguments.fill),
    };
    page::head(&command(), runs, scale.time, quick);
    let mut places = Places::default();
    let only = arguments.only.as_deref();
    let settings = places.settings(&plan::kinds(only), !quick).await;
    let mut cases = plan::cases(&settings, arguments.peers, only);
    for run in 0..runs {
        if !quick {
            eprintln!("run {} of {runs}", run + 1);
        }
        for case in cases.iter_mut().filter(|case| run == 0 || case.what.is_repeated()) {
            case.measure(&mut places, scale).await;
        }
    }
    page::tables(&cases);
}

/// The command that runs it so again.
fn command() -> String {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let separator = if arguments.is_empty() { "" } else { " -- " };
    format!("cargo bench --quiet --bench tasks{separator}{}", arguments.join(" "))
}
