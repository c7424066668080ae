//! `tasks list`: selected tasks, a page at a time.

use interval_queue_documents::{Task, words};
use interval_queue_tasks::{Order, Stored};

use super::{opened::selector, recount, task_args::List};
use crate::{
    args::Target,
    exit::{Failure, NOINPUT, USAGE, print, print_as_it_is, report},
    json_output::json_line,
};

const PAGE_SIZE: u32 = 500;
const MAX_ERROR_CHARS: usize = 100;

pub(super) async fn list(target: &Target, list: &List) -> Result<(), Failure> {
    let queue = target.tasks().await?;
    let selector = selector(&queue, &list.selector).await?;
    let most = list.limit.unwrap_or(u64::MAX);
    if list.count {
        return print(&queue.count(&selector, most).await?.to_string());
    }
    let order = match (list.newest, list.selector.is_of_ended()) {
        (false, _) => Order::Oldest,
        (true, false) => Order::Newest,
        (true, true) => Order::Ended,
    };
    let from = list.after.unwrap_or(order.start());
    if list.newest && from.order != order {
        let text = format!("cursor {from} is of another list: give the cursor that this list has printed");
        return Err(Failure::new(USAGE, text));
    }
    let mut after = Some(from);
    let mut listed = 0;
    while let Some(from) = after {
        let limit = u32::try_from(most - listed).map_or(PAGE_SIZE, |left| left.min(PAGE_SIZE));
        let page = queue.page(&selector, from, limit, list.payloads).await?;
        let mut text = String::new();
        if listed == 0 && !list.json && !page.tasks.is_empty() {
            text += &line(["ID", "STATE", "FAILED", "ADDED", "KIND", "KEY", "ERROR"].map(str::to_owned));
        }
        for stored in &page.tasks {
            text += &if list.json { json_line(&Task::listed(stored)) } else { lines_of(stored) };
        }
        listed += page.tasks.len() as u64;
        print_as_it_is(text.as_bytes())?;
        if page.miscounted {
            report(&recount::advice(target));
        }
        after = page.next;
        if let Some(next) = after.filter(|_| listed == most) {
            report(&format!("for the next tasks: --after {next}"));
            return Ok(());
        }
    }
    match listed {
        0 if list.after.is_some() => {
            Err(Failure::new(NOINPUT, "no task after the cursor matches the selector"))
        }
        0 => Err(Failure::new(NOINPUT, "no task matches the selector")),
        _ => Ok(()),
    }
}

/// Includes payload and result if they were read.
fn lines_of(stored: &Stored) -> String {
    let task = &stored.task;
    let error = task.error.as_deref().map(words::line).unwrap_or_default();
    let mut text = line([
        task.id.to_string(),
        task.state.to_string(),
        task.failures.to_string(),
        words::time(task.added),
        words::line(task.kind.as_str()),
        task.key.as_ref().map_or("-".into(), |key| words::line(key.as_str())),
        error.chars().take(MAX_ERROR_CHARS).collect(),
    ]);
    for (name, body) in [("payload", &stored.payload), ("result", &stored.result)] {
        if let Some(body) = body {
            text += &format!("  {name:8} {}\n", words::line(body.as_str()));
        }
    }
    text
}

fn line([id, state, failures, added, kind, key, error]: [String; 7]) -> String {
    let line = format!("{id:36}  {state:9}  {failures:>6}  {added:20}  {kind:12}  {key:12}  {error}");
    format!("{}\n", line.trim_end())
}
