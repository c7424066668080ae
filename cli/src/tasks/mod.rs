//! `tasks`: shows and changes the stored tasks of a queue.
//!
//! `task_args` and `verb_args` are the command line, and `queue_tasks` reads and changes the store.
//! `status_text` formats the conditions in force, which the library determines, and `counts`
//! formats counts. `queue_status` is the page of a queue, `status_lines` its part of `status` and
//! `list`, `summary` its part of `watch`, and `content` the stored parts that `delete` deletes.
//! `workers`, `tags`, `times` and `failures` print the workers, the tags, the waiting and running
//! times, and the errors. `why` explains a waiting task, and `follow` prints changes of state.
//! `recount` corrects counts, `set` changes settings, and `settings` reads and writes them as a
//! file. `task_list`, `show`, `wait`, `verbs` and `transfer` are about single tasks and flows.
//! `json` formats them for programs, `task_words` and `tree` for people.

mod content;
mod counts;
mod failures;
mod follow;
mod json;
mod queue_status;
mod queue_tasks;
mod recount;
mod set;
mod settings;
mod show;
mod status_lines;
mod status_text;
mod summary;
mod tags;
mod task_args;
mod task_list;
mod task_words;
mod times;
mod transfer;
mod tree;
mod verb_args;
mod verbs;
mod wait;
mod why;
mod workers;

use self::task_args::Action;
pub(crate) use self::{
    content::Content,
    counts::Counts,
    failures::failures_text,
    queue_tasks::{Tasks, open_queue, pause_or_resume},
    show::TextPage,
    status_lines::StatusLines,
    summary::Summary,
    task_args::TasksArgs,
    workers::{run_line, upcoming_line},
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

pub(crate) async fn run(tasks: TasksArgs) -> Result<(), Failure> {
    if let Some(failure) = tasks.action.as_ref().and_then(Action::elsewhere) {
        return Err(failure);
    }
    let target = tasks.target()?;
    let store = Tasks::open(&target).await?;
    let Some(action) = &tasks.action else {
        return queue_status::print_status(&target, &store, tasks.over, tasks.json).await;
    };
    match action {
        Action::List(list) => task_list::list(&target, &store, list).await,
        Action::Show(show) => show::show(&store, show).await,
        Action::Why(args) => why::why(&target, &store, args).await,
        Action::Workers(args) => workers::workers(&store, args).await,
        Action::Times(args) => times::times(&store, args).await,
        Action::Tags(args) => tags::tags(&target, &store, args).await,
        Action::Follow(args) => follow::follow(&target, &store, args).await,
        Action::Set(args) => set::set(&store, args).await,
        Action::Recount(args) => recount::recount(&target, &store, args).await,
        Action::Failures(failures) => failures::failures(&target, &store, failures).await,
        Action::Wait(wait) => wait::wait(&target, &store, wait).await,
        Action::Copy(copy) => transfer::copy(&target, &store, copy).await,
        Action::Move(args) => transfer::move_tasks(&target, &store, args).await,
        action => match action.verb() {
            Some((verb, change)) => verbs::change(&target, &store, verb, change, action.is_rerun()).await,
            None => Ok(()),
        },
    }
}
