//! How much a strict limiter refuses: four processes keep a pace together, and each job calls nginx at its start, which
//! refuses what comes early (`limit_req`, with and without a burst). Other libraries beside ours.
//!
//!     cargo bench --bench strict                       all of it, three times: seven minutes
//!     cargo bench --bench strict -- --busy 4           beside four busy loops
//!     cargo bench --bench strict -- --quick            a tenth of the requests, once, to see that it works

#![allow(dead_code, reason = "it uses a part of the benchmark of the pace")]

#[path = "../pace/assignment.rs"]
mod assignment;
#[path = "../pace/call.rs"]
mod call;
#[path = "../pace/clock.rs"]
mod clock;
#[path = "../pace/contender.rs"]
mod contender;
#[path = "../pace/crew.rs"]
mod crew;
#[path = "../pace/figures.rs"]
mod figures;
#[path = "../pace/install.rs"]
mod install;
#[path = "../pace/local.rs"]
mod local;
mod nginx;
#[path = "../pace/notes.rs"]
mod notes;
#[path = "../pace/peers.rs"]
mod peers;
#[path = "../pace/report.rs"]
#[allow(unreachable_pub, reason = "the form of a file that others read, too")]
mod report;
#[path = "../pace/scenario.rs"]
mod scenario;
mod shell;
mod strict_case;
mod strict_run;
mod strict_table;
#[path = "../pace/watched.rs"]
mod watched;
#[path = "../pace/worker.rs"]
mod worker;

use std::{env, error::Error, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

use crate::{
    contender::{Ours, Threads},
    nginx::{Nginx, Verdict},
    strict_case::{Case, Who},
    strict_run::{BusyLoops, Means},
};

/// Whatever went wrong.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// Measures how many requests nginx refuses that limits their rate, and how many good answers come a second.
///
/// Shown are the medians of several runs, everything once before anything again.
#[derive(Debug, Parser)]
#[command(name = "cargo bench --bench strict --", bin_name = "cargo bench --bench strict --")]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true, max_term_width = 110)]
struct Arguments {
    /// How often each is run [default: 3, with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Run so many busy loops beside it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    busy: u32,
    /// Run only this library, without other libraries and without the program.
    #[arg(long)]
    ours: bool,
    /// Run only what has this in its line of the table, such as `95 %` or `BullMQ`.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// The program `interval-queue`, to measure `interval-queue run -- curl` [default: what `cargo build
    /// --release` has built, if it has]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// A tenth of the requests, once: to see that it works, not to be quoted.
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
    /// A worker process.
    #[command(hide = true)]
    Worker(worker::Arguments),
    /// A process that starts one process after the other.
    #[command(hide = true)]
    Shell(shell::Arguments),
}

fn main() -> ExitCode {
    let arguments = match env::args().len() {
        // `cargo test --benches` says nothing: that only shows that the benchmark works.
        1 => Arguments::parse_from(["strict", "--quick", "--ours"]),
        _ => Arguments::parse(),
    };
    let ended = match arguments.role {
        Some(Role::Worker(arguments)) => worker::run(arguments),
        Some(Role::Shell(arguments)) => shell::run(arguments),
        None => benchmark(&arguments),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn benchmark(arguments: &Arguments) -> Result<(), Failure> {
    if Nginx::program().is_none() {
        eprintln!(
            "everything is left out: nginx is not here; install it (Debian: apt-get install nginx-light)"
        );
        return Ok(());
    }
    let mut cases = Case::all(arguments.quick);
    if let Some(text) = &arguments.only {
        cases.retain(|case| strict_table::row(case, &[]).contains(text));
    }
    if arguments.ours {
        cases.retain(|case| matches!(case.who, Who::Slots | Who::Starts));
    }
    let program = arguments.program.clone().or_else(strict_case::program);
    if program.is_none() && cases.iter().any(|case| case.who == Who::Curl) {
        eprintln!(
            "{} is left out: `cargo build --release -p interval-queue-cli` brings it",
            Who::Curl.name()
        );
        cases.retain(|case| case.who != Who::Curl);
    }
    let peers = peers::all();
    for peer in &peers {
        let is_case_of = |case: &Case| case.who.name() == peer.name();
        if cases.iter().any(is_case_of)
            && let Err(reason) = peer.prepare()
        {
            eprintln!("{} is left out: {reason}", peer.name());
            cases.retain(|case| !is_case_of(case));
        }
    }
    if cases.is_empty() {
        return Err("nothing is left to run".into());
    }
    let means = Means { ours: Ours { threads: Threads::Single }, peers: &peers, program: program.as_deref() };
    let runs = arguments.runs.unwrap_or(if arguments.quick { 1 } else { 3 });
    let turn: u64 = cases.iter().map(|case| case.takes().as_secs()).sum();
    eprintln!("{} cases, {runs} times: about {} s", cases.len(), turn * u64::from(runs));

    let _busy = BusyLoops::start(arguments.busy);
    let mut found: Vec<Vec<Verdict>> = vec![Vec::new(); cases.len()];
    for run in 1..=runs {
        for (case, found) in cases.iter().zip(&mut found) {
            eprintln!("[{run}/{runs}] {}, {} %, {}", case.limit(), case.share, case.who.name());
            match strict_run::once(case, &means, run.into()) {
                Ok(verdict) => found.push(verdict),
                Err(failure) => eprintln!("    {failure}"),
            }
        }
    }
    println!("{}", strict_table::HEAD);
    for (case, found) in cases.iter().zip(&found) {
        println!("{}", strict_table::row(case, found));
    }
    if found.iter().any(|found| found.len() < runs as usize) {
        return Err("not everything could be run: see above".into());
    }
    Ok(())
}
