//! `tasks`: how the stored tasks of a queue stand, and what is done with them by hand.
//!
//! `args` is what the command line says, `ask` talks to the store. `outlook` is what can be said of a queue: how it
//! stands, why nothing runs, how fast it is. `list`, `show` and `verbs` are about single tasks, which `json` and
//! `words` tell for programs and for people.

mod args;
mod ask;
mod json;
mod list;
mod outlook;
mod show;
mod verbs;
mod words;

use self::args::Action;
pub(crate) use self::{
    args::TasksArgs,
    ask::{Tasks, pause_or_resume},
    outlook::{brief, brief_json, counted},
};
use crate::exit::Failure;

pub(crate) async fn tasks(tasks: TasksArgs) -> Result<(), Failure> {
    let target = tasks.target()?;
    let store = Tasks::open(&target).await?;
    let Some(action) = &tasks.action else {
        return outlook::tell(&target, &store, tasks.over, tasks.json).await;
    };
    match action {
        Action::List(list) => list::list(&store, list).await,
        Action::Show(show) => show::show(&store, show).await,
        Action::Cancel(_) | Action::Retry(_) | Action::Release(_) | Action::Purge(_) => match action.verb() {
            Some((verb, change)) => verbs::change(&store, verb, change).await,
            None => Ok(()),
        },
    }
}
