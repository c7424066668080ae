//! `tasks`: how the stored tasks of a queue stand, and what is done with them by hand.
//!
//! `args` and `verb_args` are what the command line says, `ask` talks to the store. `outlook` is what can be said of a
//! queue: how it stands, why nothing runs, how fast it is; `brief` is what `status` says of that. `workers` tells who
//! works, `tags` which tags there are, `times` how long tasks took, `failures` what went wrong, `why` what one task
//! waits for, `follow` what becomes of tasks as it happens. `set` changes what holds for all, `settings` is that as a
//! file. `list`, `show`, `wait`, `verbs` and `carry` are about single tasks and flows, which `json` tells for programs,
//! `words` and `tree` for people.

mod args;
mod ask;
mod brief;
mod carry;
mod failures;
mod follow;
mod json;
mod list;
mod outlook;
mod set;
mod settings;
mod show;
mod tags;
mod times;
mod tree;
mod verb_args;
mod verbs;
mod wait;
mod why;
mod words;
mod workers;

use self::args::Action;
pub(crate) use self::{
    args::TasksArgs,
    ask::{Tasks, no_tasks, open_queue, pause_or_resume},
    brief::Brief,
    failures::what_failed,
    outlook::{Counts, Standing},
    show::TextPage,
    workers::{run, waiting},
};
use interval_queue::StateError;
use interval_queue_tasks::{Error, ErrorKind};

use crate::exit::{DATAERR, Failure, NOINPUT, SOME_FAILED, USAGE, chain, code_of};

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        let code = match (error.state(), error.kind()) {
            (Some(state), _) => code_of(state.kind()),
            (None, ErrorKind::Missing) => NOINPUT,
            (None, ErrorKind::Mismatch) => DATAERR,
            (None, ErrorKind::Failed | ErrorKind::Cancelled) => SOME_FAILED,
            (None, _) => USAGE,
        };
        let passes = error.state().is_some_and(StateError::is_retryable);
        Self { code, message: chain(error), passes }
    }
}

pub(crate) async fn tasks(tasks: TasksArgs) -> Result<(), Failure> {
    let target = tasks.target()?;
    let store = Tasks::open(&target).await?;
    let Some(action) = &tasks.action else {
        return outlook::tell(&target, &store, tasks.over, tasks.json).await;
    };
    match action {
        Action::List(list) => list::list(&store, list).await,
        Action::Show(show) => show::show(&store, show).await,
        Action::Why(args) => why::why(&target, &store, args).await,
        Action::Workers(args) => workers::workers(&store, args).await,
        Action::Times(args) => times::times(&store, args).await,
        Action::Tags(args) => tags::tags(&target, &store, args).await,
        Action::Follow(args) => follow::follow(&target, &store, args).await,
        Action::Set(args) => set::set(&store, args).await,
        Action::Failures(failures) => failures::failures(&target, &store, failures).await,
        Action::Wait(wait) => wait::wait(&target, &store, wait).await,
        Action::Copy(copy) => carry::copy(&target, &store, copy).await,
        Action::Move(args) => carry::move_tasks(&target, &store, args).await,
        action => match action.verb() {
            Some((verb, change)) => verbs::change(&target, &store, verb, change, action.is_rerun()).await,
            None => Ok(()),
        },
    }
}
