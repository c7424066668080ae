//! `tasks`: shows and changes the stored tasks of a queue. `task_args` and `verb_args` are the
//! command line, and `opened` opens the queue. The documents of `--json`, and reasons in words, are
//! those of `interval_queue_documents`.

mod alert_command;
mod alert_edge;
mod alerts;
mod content;
mod failures;
mod follow;
mod id_arg;
mod kind_policy;
mod note;
mod opened;
mod queue_status;
mod recount;
mod set;
mod settings;
mod show;
mod status_lines;
mod status_reader;
mod summary;
mod tags;
mod task_args;
mod task_list;
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
    failures::failures_text,
    show::TextPage,
    status_lines::StatusLines,
    summary::Summary,
    task_args::TasksArgs,
    workers::{run_line, upcoming_line},
};
use interval_queue::StateError;
use interval_queue_tasks::{Error, ErrorKind};

use crate::exit::{DATAERR, Failure, NOINPUT, SOME_FAILED, TEMPFAIL, USAGE, chain, code_of};

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        let code = match (error.state(), error.kind()) {
            (None, ErrorKind::Conflict) => TEMPFAIL,
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
    let target = tasks.target()?;
    let Some(action) = &tasks.action else {
        return queue_status::print_status(&target, tasks.over, tasks.json).await;
    };
    match action {
        Action::List(list) => task_list::list(&target, list).await,
        Action::Show(show) => show::show(&target, show).await,
        Action::Why(args) => why::why(&target, args).await,
        Action::Workers(args) => workers::workers(&target, args).await,
        Action::Times(args) => times::times(&target, args).await,
        Action::Tags(args) => tags::tags(&target, args).await,
        Action::Follow(args) => follow::follow(&target, args).await,
        Action::Note(args) => note::note(&target, args).await,
        Action::Watch(args) => alerts::watch(&target, args).await,
        Action::Set(args) => set::set(&target, args).await,
        Action::Recount(args) => recount::recount(&target, args).await,
        Action::Failures(failures) => failures::failures(&target, failures).await,
        Action::Wait(wait) => wait::wait(&target, wait).await,
        Action::Copy(copy) => transfer::copy(&target, copy).await,
        Action::Move(args) => transfer::move_tasks(&target, args).await,
        action => match action.verb() {
            Some((verb, change)) => verbs::change(&target, verb, change, action.is_rerun()).await,
            None => Ok(()),
        },
    }
}
