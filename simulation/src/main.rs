//! The program `interval-queue-sim`: many simulations, one after the other, until a promise breaks.

mod args;
mod clock;
mod report;
mod search;
mod subject;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let holds = match args::Args::parse().action {
        args::Action::Run(options) => search::run(&options),
        args::Action::Replay(options) => search::replay(&options),
        args::Action::Faults => report::faults(),
    };
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
