//! `tasks`: how the stored tasks of a queue stand, and what is done with them by hand.
//!
//! `args` is what the command line says, `ask` talks to the store. `outlook` is what can be said of a queue: how it
//! stands, why nothing runs, how fast it is. `list`, `show`, `wait` and `verbs` are about single tasks and flows, which
//! `json` tells for programs, `words` and `tree` for people.

mod args;
mod ask;
mod json;
mod list;
mod outlook;
mod show;
mod tree;
mod verbs;
mod wait;
mod words;

use self::args::Action;
pub(crate) use self::{
    args::TasksArgs,
    ask::{Tasks, open_queue, pause_or_resume},
    outlook::{brief, brief_json, counted},
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
        Action::Wait(wait) => wait::wait(&target, &store, wait).await,
        Action::Cancel(_) | Action::Retry(_) | Action::Release(_) | Action::Purge(_) => match action.verb() {
            Some((verb, change)) => verbs::change(&target, &store, verb, change).await,
            None => Ok(()),
        },
    }
}
