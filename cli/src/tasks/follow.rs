//! `tasks follow`: changes of state, as they happen.

use std::collections::HashSet;

use clap::Args;
use interval_queue_documents::{Event as Document, LoggedLine, MissedEvents};
use interval_queue_tasks::{Event, Kind, MAX_PAGE, MAX_TAGS, Selector, State, Tag, TaskId, TaskQueue};

use crate::{
    add::{kind, tag},
    args::Target,
    exit::{Failure, USAGE, print_on, report},
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
    interval-queue tasks follow --kind mail | jq -c '[.task, .to]'\n  \
    interval-queue tasks follow --log --kind import | jq --unbuffered -r '.text // empty'\n  \
    interval-queue tasks follow --tag customer-7 --to done --to failed\n\n\
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
    /// Also print a line for each new line in the log of a selected task
    #[arg(long)]
    log: bool,
    /// Only tasks with this tag when the event is read; given several times: with all of these
    #[arg(long = "tag", value_name = "TAG", value_parser = tag)]
    tags: Vec<Tag>,
}

impl Follow {
    /// Whether an event is selected, apart from the tags of its task.
    fn selects(&self, event: &Event) -> bool {
        (self.ids.is_empty() || self.ids.contains(&event.task))
            && (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && (event.is_log()
                || self.states.is_empty()
                || self.states.contains(&event.to.unwrap_or(State::Purged)))
    }

    /// The selected events. Tags are read now: a store keeps a task, with its tags, for longer than
    /// its events, also a purged task.
    async fn selected<'a>(&self, queue: &TaskQueue, events: &'a [Event]) -> Result<Vec<&'a Event>, Failure> {
        let mut selected: Vec<_> = events.iter().filter(|event| self.selects(event)).collect();
        if self.tags.is_empty() || selected.is_empty() {
            return Ok(selected);
        }
        let ids: HashSet<_> = selected.iter().map(|event| event.task).collect();
        let tagged = Selector { tags: self.tags.clone(), states: State::ALL.to_vec(), ..Selector::ids(ids) };
        let (tasks, _) = queue.first(&tagged, MAX_PAGE).await?;
        let tagged: HashSet<_> = tasks.into_iter().map(|task| task.id).collect();
        selected.retain(|event| tagged.contains(&event.task));
        Ok(selected)
    }
}

pub(super) async fn follow(target: &Target, args: &Follow) -> Result<(), Failure> {
    if args.tags.len() > MAX_TAGS {
        let text = format!("{} tags: a task has at most {MAX_TAGS}", args.tags.len());
        return Err(Failure::new(USAGE, text));
    }
    let queue = target.tasks_for_long().await?;
    let mut follower = queue.follow().await?;
    let mut tail = None;
    if args.log {
        follower = follower.with_logs();
        tail = Some(queue.log_tail().await?);
    }
    report(&format!("following the tasks of {:?} from now on; Ctrl-C ends it", queue.name().as_str()));
    loop {
        let followed = follower.next().await?;
        let missed = followed.missed.then(|| json_line(&MissedEvents::at(followed.mark.at)));
        let events = args.selected(&queue, &followed.events).await?;
        let (logs, events): (Vec<_>, Vec<_>) = events.into_iter().cloned().partition(Event::is_log);
        let logs = match &mut tail {
            Some(tail) => tail.new_lines(&logs).await?,
            None => Vec::new(),
        };
        let events = events.iter().map(|event| json_line(&Document::from(event)));
        let logs = logs.iter().map(|(task, line)| json_line(&LoggedLine::of(*task, line)));
        let lines: String = missed.into_iter().chain(events).chain(logs).collect();
        if !print_on(lines.as_bytes())? {
            return Ok(());
        }
    }
}
