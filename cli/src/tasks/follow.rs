//! `tasks follow`: changes of state, as they happen.

use clap::Args;
use interval_queue_documents::{Event as Document, MissedEvents};
use interval_queue_tasks::{Event, Kind, State, TaskId};

use crate::{
    add::kind,
    args::Target,
    exit::{Failure, print_on, report},
    json_output::json_line,
};

/// Print a line of JSON for each change of state of a task, until it is stopped.
///
/// It begins when it prints so on stderr, and reads twice a second. Events are recorded only while
/// a follower reads. A reader that is late by a minute misses events: then a line has `missed`
/// instead of a task. A closed pipe is noticed at the next line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    interval-queue tasks follow --to failed | jq --unbuffered -r .error\n  \
    interval-queue tasks follow --kind mail | jq -c '[.task, .to]'\n\n\
    `interval-queue schema tasks` describes the lines.")]
pub(super) struct Follow {
    /// Ids of tasks. Default: all tasks
    #[arg(value_name = "ID")]
    ids: Vec<TaskId>,
    /// Only tasks of this kind; may be given several times. Default: all kinds
    #[arg(long = "kind", value_name = "KIND", value_parser = kind)]
    kinds: Vec<Kind>,
    /// Only changes to this state; may be given several times. Default: all states
    #[arg(long = "to", value_name = "STATE")]
    states: Vec<State>,
}

impl Follow {
    fn selects(&self, event: &Event) -> bool {
        (self.ids.is_empty() || self.ids.contains(&event.task))
            && (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && (self.states.is_empty() || self.states.contains(&event.to.unwrap_or(State::Purged)))
    }
}

pub(super) async fn follow(target: &Target, args: &Follow) -> Result<(), Failure> {
    let queue = target.tasks_for_long().await?;
    let mut follower = queue.follow().await?;
    report(&format!("following the tasks of {:?} from now on; Ctrl-C ends it", queue.name().as_str()));
    loop {
        let followed = follower.next().await?;
        let missed = followed.missed.then(|| json_line(&MissedEvents::at(followed.mark.at)));
        let events = followed.events.iter().filter(|event| args.selects(event));
        let events = events.map(|event| json_line(&Document::from(event)));
        let lines: String = missed.into_iter().chain(events).collect();
        if !print_on(lines.as_bytes())? {
            return Ok(());
        }
    }
}
