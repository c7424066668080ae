//! The program `interval-queue-report`, which `scripts/reliability` calls.

use std::{
    fmt::Display,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, Subcommand};
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
        made: Machine,
    },
    /// Write the page from that file.
    Render {
        /// The file, docs/reliability.json.
        data: PathBuf,
        /// The page to write, docs/reliability.md.
        page: PathBuf,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().action) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("interval-queue-report: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(action: Action) -> Result<(), String> {
    match action {
        Action::Collect { evidence, data, made } => {
            let report = collect(&evidence, made)?;
            let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
            write(&data, &format!("{text}\n"))
        }
        Action::Render { data, page } => {
            let named = |error: &dyn Display| format!("{}: {error}", data.display());
            let text = fs::read_to_string(&data).map_err(|error| named(&error))?;
            let report: Report = serde_json::from_str(&text).map_err(|error| named(&error))?;
            write(&page, &render(&report))
        }
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
