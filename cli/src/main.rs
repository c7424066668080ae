//! The program `interval-queue`: commands of any language and on any host, started at one pace.
//!
//! Every noun has a file. `args` is what the command line says and `--help` teaches; `target` is the queue it
//! names, `shard` this process as one of those who share its pace. `run` waits for a slot, watched by
//! `contact` and interrupted by `signals`, and hands over to the program that `program` found, in place of
//! this process or as its `child`. `each` starts such a child for each item of its input, `turns` prints a line for
//! each turn that is asked for. `add` stores tasks, `work` starts a child for each under a `guard`, `tasks` looks at
//! them and changes them, `schedule` makes them again and again. `status`, `list`, `watch`, `change` and `delete` look
//! at queues and change them without being a shard. `migrate` makes the tables of an SQL store. `outage` is what
//! commands print of a store that fails. `documents` is what the program writes about itself, `exit` how the process
//! ends.

mod add;
mod args;
mod change;
mod child;
mod clock;
mod contact;
mod delete;
mod documents;
mod duration;
mod each;
mod exit;
mod guard;
mod list;
mod migrate;
mod object;
mod outage;
mod pace;
mod place;
mod program;
mod rate;
mod run;
mod schedule;
mod shard;
mod signals;
mod status;
mod table;
mod target;
mod tasks;
mod text;
mod turns;
mod watch;
mod work;

use std::{io, process::ExitCode, time::Duration};

use clap::Parser;
use tokio::runtime::{Builder, Runtime};

use crate::{
    args::{Cli, Command},
    exit::{Ending, Failure},
};

#[cfg(not(unix))]
compile_error!("interval-queue hands signals and exit codes on as Unix knows them");

/// As long as a store waits for its lock.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// After a failure or a signal nobody should wait for a store that may be why.
const BRIEF_CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let cli = match guard::is_meant(&args) {
        true => None,
        false => match Cli::try_parse() {
            Ok(cli) => Some(cli),
            Err(error) => return exit::clap(&error),
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
            Some(cli) => carry_out(cli.command).await,
            None => guard::guard(&args[1..]).await.map(|()| Ending::Code(0)),
        }
    });
    // A command that hangs in the file system must not keep the process. What runs in the background ends before the
    // stores are closed: its next command would open them again.
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

async fn carry_out(command: Command) -> Result<Ending, Failure> {
    use Command::{Each, Run, Turns, Watch, Work};
    if !matches!(command, Run(_) | Each(_) | Turns(_) | Watch(_) | Work(_)) {
        signals::end_if_init().map_err(|error| Failure::os("cannot listen to signals", &error))?;
    }
    match command {
        Command::Run(run) => return run::run(run).await,
        Command::Each(each) => return each::each(each).await,
        Command::Work(work) => return work::work(work).await,
        Command::Turns(turns) => return turns::turns(turns).await,
        Command::Watch(watch) => return watch::watch(watch).await,
        Command::Status(status) => status::status(status).await?,
        Command::List(list) => list::list(list).await?,
        Command::Pause(target) => change::pause(target).await?,
        Command::Resume(target) => change::resume(target).await?,
        Command::Hold(hold) => change::hold(hold).await?,
        Command::Set(set) => change::set(set).await?,
        Command::Reset(target) => change::reset(target).await?,
        Command::Delete(delete) => delete::delete(delete).await?,
        Command::Prune(prune) => delete::prune(prune).await?,
        Command::Add(add) => add::add(add).await?,
        Command::Tasks(tasks) => tasks::tasks(tasks).await?,
        Command::Schedule(schedule) => schedule::schedule(schedule).await?,
        Command::Migrate(migrate) => migrate::migrate(migrate).await?,
        Command::Schema(schema) => documents::schema(&schema)?,
        Command::Completions(completions) => documents::completions(&completions)?,
        Command::Manual(manual) => documents::manual(&manual)?,
    }
    Ok(Ending::Code(0))
}
