//! The program `interval-queue-report`, which `scripts/reliability` calls.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Parser, Subcommand};
use interval_queue_report::{Machine, Report, collect, render};

/// Gathers what was measured, and writes the page that tells it.
#[derive(Debug, Parser)]
#[command(name = "interval-queue-report", version)]
struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Gather the evidence in a directory into one file.
    Collect {
        /// The directory that the runs wrote to.
        evidence: PathBuf,
        /// The file to write, docs/reliability.json.
        data: PathBuf,
        #[command(flatten)]
        made: Made,
    },
    /// Write the page from that file.
    Render {
        /// The file, docs/reliability.json.
        data: PathBuf,
        /// The page to write, docs/reliability.md.
        page: PathBuf,
    },
}

#[derive(Debug, Args)]
struct Made {
    /// The day on which the runs were made.
    #[arg(long)]
    date: String,
    /// The command that made them.
    #[arg(long)]
    command: String,
    /// The version of the compiler.
    #[arg(long)]
    rustc: String,
    /// The servers with their versions.
    #[arg(long)]
    servers: String,
    /// Operating system and kernel.
    #[arg(long)]
    system: String,
    /// The number of cores.
    #[arg(long)]
    cores: u32,
}

fn main() -> ExitCode {
    match run(Arguments::parse().action) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprint!("interval-queue-report: {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                eprint!(": {error}");
                cause = error.source();
            }
            eprintln!();
            ExitCode::FAILURE
        }
    }
}

fn run(action: Action) -> Result<(), Box<dyn Error>> {
    match action {
        Action::Collect { evidence, data, made } => {
            let Made { date, command, rustc, servers, system, cores } = made;
            let report = collect(&evidence, Machine { date, command, rustc, servers, system, cores })?;
            write(&data, &format!("{}\n", serde_json::to_string_pretty(&report)?))
        }
        Action::Render { data, page } => {
            let text = fs::read_to_string(&data).map_err(|error| format!("{}: {error}", data.display()))?;
            let report: Report =
                serde_json::from_str(&text).map_err(|error| format!("{}: {error}", data.display()))?;
            write(&page, &render(&report))
        }
    }
}

fn write(path: &Path, text: &str) -> Result<(), Box<dyn Error>> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()).into())
}
