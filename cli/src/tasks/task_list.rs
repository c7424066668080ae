//! `tasks list`: selected tasks, a page at a time.

use interval_queue_documents::{Task, words};

use super::{opened::selector, recount, task_args::List};
use crate::{
    args::Target,
    exit::{Failure, NOINPUT, print_as_it_is, report},
    json_output::json_line,
};

/// Tasks per read.
const PAGE_SIZE: u32 = 500;
/// Maximum characters of an error on a line.
const MAX_ERROR_CHARS: usize = 100;

pub(super) async fn list(target: &Target, list: &List) -> Result<(), Failure> {
    let queue = target.tasks().await?;
    let selector = selector(&queue, &list.selector).await?;
    let mut after = None;
    let mut is_first = true;
    loop {
        let page = queue.page(&selector, after, PAGE_SIZE, list.payloads).await?;
        let mut text = String::new();
        if is_first && !list.json && !page.tasks.is_empty() {
            text += &line(["ID", "STATE", "FAILED", "ADDED", "KIND", "KEY", "ERROR"].map(str::to_owned));
        }
        for stored in &page.tasks {
            if list.json {
                text += &json_line(&Task::listed(stored));
                continue;
            }
            let task = &stored.task;
            let error: String = task
                .error
                .as_deref()
                .map(words::line)
                .unwrap_or_default()
                .chars()
                .take(MAX_ERROR_CHARS)
                .collect();
            text += &line([
                task.id.to_string(),
                task.state.to_string(),
                task.failures.to_string(),
                words::time(task.added),
                words::line(task.kind.as_str()),
                task.key.as_ref().map_or("-".into(), |key| words::line(key.as_str())),
                error,
            ]);
            for (name, body) in [("payload", &stored.payload), ("result", &stored.result)] {
                if let Some(body) = body {
                    text += &format!("  {name:8} {}\n", words::line(body.as_str()));
                }
            }
        }
        is_first &= page.tasks.is_empty();
        print_as_it_is(text.as_bytes())?;
        if page.miscounted {
            report(&recount::advice(target));
        }
        match page.next {
            Some(next) => after = Some(next),
            None if is_first => return Err(Failure::new(NOINPUT, "no task matches the selector")),
            None => return Ok(()),
        }
    }
}

fn line([id, state, failures, added, kind, key, error]: [String; 7]) -> String {
    let line = format!("{id:36}  {state:9}  {failures:>6}  {added:20}  {kind:12}  {key:12}  {error}");
    format!("{}\n", line.trim_end())
}
