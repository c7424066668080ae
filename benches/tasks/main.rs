//! Measures stored tasks on each store, compared with other libraries.
//!
//!     scripts/benchmarks tasks --store sqlite --peers      one store: five minutes
//!     cargo bench --quiet --bench tasks -- --quick         to see that it works

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that fails says so")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

mod adds;
mod backlog;
mod burn;
mod case;
#[path = "../pace/clock.rs"]
#[allow(dead_code, reason = "it uses some of it")]
mod clock;
mod compared;
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

/// The result of `machine.rs`.
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

/// The part of the state that `machine.rs` needs.
mod state {
    /// The file system of the databases.
    pub(crate) fn disk() -> Option<String> {
        crate::machine::file_system(env!("CARGO_TARGET_TMPDIR").as_ref())
    }
}

use std::{
    env,
    error::Error,
    process::ExitCode,
    time::{Duration, UNIX_EPOCH},
};

use clap::{Parser, Subcommand};

use crate::{
    case::Scale,
    place::{Kind, Places},
};

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// How long something is measured.
const TIME: Duration = Duration::from_millis(700);
const QUICK_TIME: Duration = Duration::from_millis(100);
/// The part of the tasks that a quick run has.
const QUICK_SHARE: usize = 100;

/// Measures stored tasks on a directory, on SQLite, and on servers of Redis and PostgreSQL that it starts.
///
/// Prints a section of docs/benchmarks.md for each store. Figures are medians of the runs. Each run measures every
/// case once.
#[derive(Debug, Parser)]
#[command(name = "cargo bench --bench tasks --", bin_name = "cargo bench --bench tasks --")]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true, max_term_width = 110)]
struct Arguments {
    /// Measure only these stores. Default: all.
    #[arg(long, value_name = "STORE", value_delimiter = ',')]
    store: Vec<Kind>,
    /// Measure only cases with this text in their names, such as a part, a durability or a library of the page.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Number of runs.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Measure other libraries, too. The first run installs them into target/benchmarks/peers.
    #[arg(long)]
    peers: bool,
    /// Maximum time to fill a store. Tasks that are not stored by then are left out.
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    fill: u64,
    /// Measure a hundredth of each case, to see that it works. The figures mean nothing.
    #[arg(long)]
    quick: bool,
    /// Given by `cargo bench`, but not by `cargo test`.
    #[arg(long, hide = true)]
    bench: bool,
    #[command(subcommand)]
    role: Option<Role>,
}

/// The processes as which the benchmark starts itself.
#[derive(Debug, Subcommand)]
enum Role {
    #[command(hide = true)]
    Adder(roles::Adder),
    #[command(hide = true)]
    Stepper(roles::Stepper),
    #[command(hide = true)]
    Runner(roles::Runner),
}

fn main() -> ExitCode {
    let arguments = match env::args().len() {
        // `cargo test --benches` passes no argument: there may be no server.
        1 => Arguments::parse_from(["tasks", "--quick", "--store", "sqlite"]),
        _ => Arguments::parse(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let ended = runtime.block_on(async {
        match arguments.role {
            Some(Role::Adder(adder)) => adder.work().await,
            Some(Role::Stepper(stepper)) => stepper.work().await,
            Some(Role::Runner(runner)) => runner.work().await,
            None => return measure(&arguments).await,
        }
        Ok(())
    });
    // Connections need no orderly end.
    runtime.shutdown_background();
    ended.map_or_else(
        |error| {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

async fn measure(arguments: &Arguments) -> Result<(), Failure> {
    let (quick, runs) = (arguments.quick, arguments.runs);
    let scale = Scale {
        share: if quick { QUICK_SHARE } else { 1 },
        time: if quick { QUICK_TIME } else { TIME },
        fill: Duration::from_secs(arguments.fill),
    };
    let mut places = Places::default();
    let kinds = if arguments.store.is_empty() { &Kind::ALL[..] } else { &arguments.store };
    let settings = places.settings(kinds, !quick).await;
    let only = arguments.only.as_deref();
    let mut cases = plan::cases(&settings, arguments.peers, only);
    if cases.is_empty() {
        return Err(match only.filter(|_| !settings.is_empty()) {
            Some(only) => format!(
                "--only {only:?} fits no case: give a part of the page, such as Adds, a durability, such as full, or a library"
            ),
            None => "none of these stores can be measured here".into(),
        }
        .into());
    }
    for run in 0..runs {
        if !quick {
            eprintln!("run {} of {runs}", run + 1);
        }
        for case in cases.iter_mut().filter(|case| run == 0 || case.what.is_repeated()) {
            case.measure(&mut places, scale).await;
        }
    }
    page::print(&cases, &made(scale.time, runs, quick));
    Ok(())
}

/// How the figures of a section were made.
fn made(time: Duration, runs: u32, quick: bool) -> String {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let now = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(clock::wall())).to_string();
    let day = now.split('T').next().unwrap_or_default();
    let quick = if quick { "This was a quick run: its figures mean nothing. " } else { "" };
    let figures = if runs == 1 { "One run".to_owned() } else { format!("Medians of {runs} runs") };
    format!(
        "{quick}Made on {day} by `scripts/benchmarks tasks {}`. {figures}; each case was measured for {time:?}.",
        arguments.join(" ")
    )
}
