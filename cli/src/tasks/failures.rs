//! `tasks failures`: failed and retrying tasks, grouped by error text.

use std::fmt::Write as _;

use interval_queue_documents::{
    Failures as Document,
    words::{self, number, quoted, show},
};
use interval_queue_tasks::{Failure as Group, Failures, Selector, State};

use super::{
    opened::selector,
    task_args::{self, SelectorArgs},
};
use crate::{
    args::Target,
    exit::{Failure, NOINPUT, USAGE, print_as_it_is},
    json_output::print_json,
    place::without_secrets,
};

const MAX_ERROR_CHARS: usize = 300;

pub(super) async fn failures(target: &Target, args: &task_args::Failures) -> Result<(), Failure> {
    if let Some(other) = args.selector.states.iter().find(|state| **state != State::Failed) {
        let text = format!("--state {other}: all failures are in the state failed; leave out --state");
        return Err(Failure::new(USAGE, text));
    }
    let queue = target.tasks().await?;
    let failed = SelectorArgs { states: vec![State::Failed], ..args.selector.clone() };
    let failures = queue.failures(&selector(&queue, &failed).await?).await?;
    if failures.groups.is_empty() {
        return Err(Failure::new(NOINPUT, "no failed task matches the selector"));
    }
    if args.json {
        return print_json(&Document::from(&failures));
    }
    print_as_it_is(text(&failures, target, &args.selector).as_bytes())
}

/// `None`: nothing failed.
pub(crate) async fn failures_text(target: &Target) -> Result<Option<String>, Failure> {
    let Some((queue, _)) = target.tasks_if_any().await? else { return Ok(None) };
    let failures = queue.failures(&Selector::states([State::Failed])).await?;
    Ok((!failures.groups.is_empty()).then(|| text(&failures, target, &SelectorArgs::default())))
}

fn text(failures: &Failures, target: &Target, selector: &SelectorArgs) -> String {
    let mut page = String::new();
    for group in &failures.groups {
        let kinds: Vec<_> =
            group.kinds.iter().map(|(kind, count)| format!("{} {kind}", number(*count))).collect();
        let (first, last) = (words::time(group.first), words::time(group.last));
        let when = if first == last { format!("at {last}") } else { format!("from {first} to {last}") };
        let error = words::line(&group.text);
        let error = match error.char_indices().nth(MAX_ERROR_CHARS) {
            Some((end, _)) => format!("{}…", &error[..end]),
            None if error.is_empty() => "(no text)".to_owned(),
            None => error,
        };
        let _ = writeln!(page, "{}: {error}", how_many(group));
        let _ = writeln!(page, "  {}; {when}, one is {}", kinds.join(", "), group.example);
        let _ = writeln!(page, "  {}\n", again(group, target, selector));
    }
    if failures.ungrouped > 0 {
        let rest = number(failures.ungrouped);
        let _ = writeln!(page, "{rest} more failed with other texts: select fewer, for example by --kind\n");
    }
    page.pop();
    page
}

fn how_many(group: &Group) -> String {
    let failed = (group.count > 0).then(|| format!("{} failed", number(group.count)));
    let retrying = (group.retrying > 0).then(|| format!("{} retrying", number(group.retrying)));
    failed.into_iter().chain(retrying).collect::<Vec<_>>().join(", ")
}

/// It works wherever it is pasted.
fn again(group: &Group, target: &Target, selector: &SelectorArgs) -> String {
    if group.count == 0 {
        return "all of them wait for a retry".into();
    }
    let Some(common) = &group.common else {
        return "their errors share no text to select them by: retry them by their ids".into();
    };
    let place = quoted(&without_secrets(&target.store.url));
    let queue = quoted(target.queue.as_str());
    let mut command =
        format!("again: interval-queue tasks retry --store={place} --queue={queue} --state failed");
    for id in &selector.ids {
        let _ = write!(command, " {id}");
    }
    for (option, value) in options(selector).into_iter().chain([("error", common.clone())]) {
        let _ = write!(command, " --{option}={}", quoted(&value));
    }
    if group.selects > group.count {
        let _ =
            write!(command, "\n  This retries {} tasks: other errors contain that text, too", group.selects);
    }
    command
}

fn options(selector: &SelectorArgs) -> Vec<(&'static str, String)> {
    let mut options: Vec<_> = selector.kinds.iter().map(|kind| ("kind", kind.to_string())).collect();
    options.extend(selector.tags.iter().map(|tag| ("tag", tag.to_string())));
    let one = [
        ("key", selector.key.as_ref().map(ToString::to_string)),
        ("flow", selector.flow.as_ref().map(ToString::to_string)),
        ("schedule", selector.schedule.as_ref().map(ToString::to_string)),
        ("payload", selector.payload.clone()),
        ("newer-than", selector.newer_than.map(show)),
        ("unique", selector.unique.as_ref().map(ToString::to_string)),
        ("worker", selector.worker.map(|worker| worker.to_string())),
        ("older-than", selector.older_than.map(show)),
    ];
    options.extend(one.into_iter().filter_map(|(option, value)| Some((option, value?))));
    options
}
