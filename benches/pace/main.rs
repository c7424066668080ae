//! How accurate and how cheap the pace is: real processes on real states, other libraries beside them.
//!
//!     cargo bench --bench pace -- --help

mod analysis;
mod arguments;
mod assignment;
mod clock;
mod contender;
mod crew;
mod notes;
mod order;
mod print;
mod report;
mod run;
mod scenario;
mod state;
mod watched;
mod worker;

use std::{env, error::Error, fs, process::ExitCode};

use clap::Parser;

use crate::{
    arguments::{Arguments, Role},
    contender::{Contender, Ours, StateKind},
    report::{Pace, Report},
    scenario::{Plan, table},
};

/// Whatever went wrong.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ended = match arguments.role {
        Some(Role::Worker(arguments)) => worker::run(arguments),
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
    let contenders: Vec<Box<dyn Contender>> = vec![Box::new(Ours { threads: arguments.threads })];
    let plans = selected(arguments)?;
    let mut entries: Vec<(&dyn Contender, &Plan, Pace)> = Vec::new();
    for plan in &plans {
        for contender in &contenders {
            if contender.states().contains(&plan.state) && contender.takes_part(plan) {
                entries.push((&**contender, plan, plan.pace(contender.name())));
            }
        }
    }
    if arguments.list {
        entries.iter().for_each(|(contender, plan, _)| println!("{}: {}", contender.name(), plan.name()));
        return Ok(());
    }
    let repeats = arguments.repeats.unwrap_or(if arguments.quick { 1 } else { 5 });
    for repeat in 1..=repeats {
        for (contender, plan, pace) in &mut entries {
            eprintln!("[{repeat}/{repeats}] {} {}", contender.name(), plan.name());
            match run::once(*contender, plan, u64::from(repeat)) {
                Ok(outcome) => {
                    pace.runs.push(outcome.run);
                    if pace.sample.is_empty() {
                        pace.sample = outcome.sample;
                    }
                }
                Err(failure) => {
                    eprintln!("    {failure}");
                    pace.failure = Some(failure.to_string());
                }
            }
        }
    }
    let found = Report {
        command: env::args().skip(1).collect::<Vec<_>>().join(" "),
        versions: contenders.iter().flat_map(|contender| contender.versions()).collect(),
        paces: entries.into_iter().map(|(_, _, pace)| pace).collect(),
        ..Report::default()
    };
    print::report(&found);
    if let Some(directory) = arguments.json.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(&arguments.json, serde_json::to_vec(&found)?)?;
    Ok(())
}

/// The plans that were asked for, on states that can be had.
fn selected(arguments: &Arguments) -> Result<Vec<Plan>, Failure> {
    let mut plans = table(arguments.quick);
    let fits = |plan: &Plan| {
        let name = plan.name();
        let has_all =
            |words: &String| words.split_whitespace().all(|word| name.split(' ').any(|part| part == word));
        (arguments.only.is_empty() || arguments.only.iter().any(has_all))
            && (arguments.state.is_empty() || arguments.state.contains(&plan.state))
    };
    plans.retain(fits);
    if plans.is_empty() {
        return Err("nothing fits --only and --state: --list shows what there is".into());
    }
    let states: std::collections::BTreeSet<StateKind> = plans.iter().map(|plan| plan.state).collect();
    for kind in states {
        if let Some(reason) = state::missing(kind) {
            eprintln!("{} is left out: {reason}", kind.name());
            plans.retain(|plan| plan.state != kind);
        }
    }
    Ok(plans)
}
