//! The program `interval-queue-report`, which `scripts/reliability` calls.

use std::{
    fmt::Display,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, Subcommand};
use interval_queue_report::{Layer, Machine, Report, collect, render};

/// Gathers what was measured, and writes the page that tells it.
#[derive(Debug, Parser)]
#[command(name = "interval-queue-report", version)]
struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Gather the evidence of one half in a directory into the file; its other half stays.
    Collect {
        /// The directory that the runs wrote to.
        evidence: PathBuf,
        /// The file to write to, docs/reliability.json.
        data: PathBuf,
        /// Which half.
        #[arg(long)]
        layer: Layer,
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
        Action::Collect { evidence, data, layer, made } => {
            let half = collect(&evidence, layer, made)?;
            let mut report = if data.exists() { read(&data)? } else { Report::default() };
            report.put(layer, half);
            let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
            write(&data, &format!("{text}\n"))
        }
        Action::Render { data, page } => write(&page, &render(&read(&data)?)),
    }
}

fn read(data: &Path) -> Result<Report, String> {
    let named = |error: &dyn Display| format!("{}: {error}", data.display());
    let text = fs::read_to_string(data).map_err(|error| named(&error))?;
    serde_json::from_str(&text).map_err(|error| named(&error))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
