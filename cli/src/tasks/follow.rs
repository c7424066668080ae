//! `tasks follow`: changes of state, as they happen.

use clap::Args;
use interval_queue::task_contract::{Event, Kind, State, TaskId};
use serde_json::{Value, json};

use super::{open_queue, queue_tasks::Tasks};
use crate::{
    add::kind,
    args::Target,
    exit::{Failure, print_on, report},
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

pub(super) async fn follow(target: &Target, tasks: &Tasks, args: &Follow) -> Result<(), Failure> {
    // Opening a queue would create it.
    tasks.now().await?;
    let mut follower = open_queue(target).await?.follow().await?;
    report(&format!("following the tasks of {:?} from now on; Ctrl-C ends it", tasks.queue.as_str()));
    loop {
        let batch = follower.next().await?;
        let missed = batch.missed.then(|| json!({ "at_us": batch.mark.at.get(), "missed": true }));
        let events = batch.events.iter().filter(|event| args.selects(event)).map(object);
        let lines: String = missed.into_iter().chain(events).map(|line| format!("{line}\n")).collect();
        if !print_on(lines.as_bytes())? {
            return Ok(());
        }
    }
}

fn object(event: &Event) -> Value {
    json!({
        "at_us": event.at.get(),
        "task": event.task,
        "kind": event.kind,
        "from": event.from.map(State::as_str),
        "to": event.to.map(State::as_str),
        "attempt": event.attempt,
        "worker": event.worker,
        "error": event.error,
    })
}
