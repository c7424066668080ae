//! The program `interval-queue`: runs commands of any language, on any number of hosts, at one
//! shared rate.
//!
//! `args` is the command line with its help texts. Commands that take slots (`run`, `each`,
//! `turns`) make this process a `shard`; `add`, `work`, `tasks` and `schedule` are about stored
//! tasks; `status`, `list`, `watch`, `change` and `delete` read and change queues through `target`.

mod add;
mod args;
mod change;
mod child;
mod clock;
mod connection_state;
mod delete;
mod documents;
mod each;
mod exit;
mod json_output;
mod list;
mod migrate;
mod other_names;
mod outage;
mod pace;
mod place;
mod program;
mod progress;
mod rate;
mod run;
mod schedule;
mod shard;
mod signals;
mod status;
mod table;
mod target;
mod tasks;
mod turns;
mod watch;
mod work;

use std::{io, process::ExitCode, time::Duration};

use clap::Parser;
use tokio::runtime::{Builder, Runtime};

use crate::{
    args::{Cli, Command},
    child::guard,
    exit::{Ending, Failure},
};

#[cfg(not(unix))]
compile_error!("interval-queue hands signals and exit codes on as Unix knows them");

/// A store waits for its lock.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// After a failure or a signal, a store that may be the cause must not delay the end.
const BRIEF_CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let cli = match guard::is_guard(&args) {
        true => None,
        false => match Cli::try_parse() {
            Ok(cli) => Some(cli),
            Err(error) => return exit::clap(&other_names::with_tip(error)),
        },
    };
    let is_guard = cli.is_none();
    let report = |failure: Failure| match is_guard && guard::report(&failure) {
        true => ExitCode::from(failure.code),
        false => failure.report(),
    };
    let runtime = match async_runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            let failure = Failure::os("cannot start the async runtime", &error);
            return report(Failure { passes: true, ..failure });
        }
    };
    let ending = runtime.block_on(async {
        match cli {
            Some(cli) => execute(cli.command).await,
            None => guard::run(&args[1..]).await.map(|()| Ending::Code(0)),
        }
    });
    // A command that hangs in the file system must not block the end. Background work ends before
    // the stores are closed: its next command would open them again.
    runtime.shutdown_background();
    if let Ok(runtime) = async_runtime() {
        let is_regular = matches!(ending, Ok(Ending::Code(_)));
        runtime.block_on(target::close_stores(if is_regular { CLOSE_TIMEOUT } else { BRIEF_CLOSE_TIMEOUT }));
        runtime.shutdown_background();
    }
    match ending {
        Ok(ending) => ending.leave(),
        Err(failure) => report(failure),
    }
}

fn async_runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

async fn execute(command: Command) -> Result<Ending, Failure> {
    use Command::{Each, Run, Turns, Watch, Work};
    if !matches!(command, Run(_) | Each(_) | Turns(_) | Watch(_) | Work(_)) {
        signals::end_if_init().map_err(|error| Failure::os("cannot listen to signals", &error))?;
    }
    match command {
        Command::Run(run) => return run::run(run).await,
        Command::Each(each) => return each::run(each).await,
        Command::Work(work) => return work::run(work).await,
        Command::Turns(turns) => return turns::run(turns).await,
        Command::Watch(watch) => return watch::run(watch).await,
        Command::Status(status) => status::run(status).await?,
        Command::List(list) => list::run(list).await?,
        Command::Pause(target) => change::halt(target, true).await?,
        Command::Resume(target) => change::halt(target, false).await?,
        Command::Hold(hold) => change::hold(hold).await?,
        Command::Set(set) => change::set(set).await?,
        Command::Reset(target) => change::reset(target).await?,
        Command::Delete(delete) => delete::run(delete).await?,
        Command::Prune(prune) => delete::prune(prune).await?,
        Command::Add(add) => add::run(add).await?,
        Command::Tasks(tasks) => tasks::run(tasks).await?,
        Command::Schedule(schedule) => schedule::run(schedule).await?,
        Command::Migrate(migrate) => migrate::run(migrate).await?,
        Command::Schema(schema) => documents::schema(&schema)?,
        Command::Completions(completions) => documents::completions(&completions)?,
        Command::Manual(manual) => documents::manual(&manual)?,
    }
    Ok(Ending::Code(0))
}
