//! `tasks follow`: what becomes of tasks, as it happens.

use clap::Args;
use interval_queue::task_contract::{Event, Kind, State, TaskId};
use serde_json::{Value, json};

use super::{ask::Tasks, open_queue};
use crate::{
    add::kind,
    args::Target,
    exit::{Failure, print_on, say},
};

/// Print a line of JSON each time a task comes into another state, until it is stopped, for pipes.
///
/// It begins when it says so on stderr, and looks twice a second. Events are stored only while somebody follows. A
/// reader that does not keep up for a minute misses some: then a line says so. That the pipe was closed is noticed with
/// the next line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    interval-queue tasks follow --to failed | jq --unbuffered -r .error\n  \
    interval-queue tasks follow --kind mail | while read -r event; do notify \"$event\"; done\n\n\
    `interval-queue schema tasks` describes the lines.")]
pub(super) struct Follow {
    /// Of these
    #[arg(value_name = "ID")]
    ids: Vec<TaskId>,
    /// Of this kind; may be given several times. Default: all
    #[arg(long = "kind", value_name = "KIND", value_parser = kind)]
    kinds: Vec<Kind>,
    /// That come into this state; may be given several times. Default: any
    #[arg(long = "to", value_name = "STATE")]
    states: Vec<State>,
}

impl Follow {
    fn is_meant(&self, event: &Event) -> bool {
        (self.ids.is_empty() || self.ids.contains(&event.task))
            && (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && (self.states.is_empty() || self.states.contains(&event.to.unwrap_or(State::Purged)))
    }
}

pub(super) async fn follow(target: &Target, tasks: &Tasks, args: &Follow) -> Result<(), Failure> {
    // To open a queue makes it.
    tasks.now().await?;
    let mut follower = open_queue(target).await?.follow().await?;
    say(&format!("following the tasks of {:?} from now on; Ctrl-C ends it", tasks.queue.as_str()));
    loop {
        let told = follower.next().await?;
        let missed = told.missed.then(|| json!({ "at_us": told.mark.at.get(), "missed": true }));
        let events = told.events.iter().filter(|event| args.is_meant(event)).map(object);
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
