//! `tasks show`: one task with all its fields, and the graph around it.

use std::{collections::HashMap, fmt::Write as _};

use interval_queue::Micros;
use interval_queue_documents::{Task as Document, words};
use interval_queue_tasks::{
    Json, LogLine, PolicyOverride, Settings, Stored, StoredTask, TaskId, TaskQueue, Token,
};

use super::{opened::existing, task_args::One, tree, why};
use crate::{
    args::Target,
    exit::{Failure, print_as_it_is},
    json_output::print_json,
};

pub(super) async fn show(target: &Target, show: &One) -> Result<(), Failure> {
    let (queue, overview) = target.tasks_and_overview().await?;
    let stored = existing(&queue, show.id.id(&queue).await?).await?;
    let settings = &overview.settings;
    if show.json {
        let why = stored.why.as_ref().map(|why| words::why(&stored.task, why));
        return print_json(&Document::whole(&stored, settings, why));
    }
    let around = tree::around(&queue, &stored).await?;
    print_as_it_is(format!("{}{around}", text(&stored, settings)).as_bytes())
}

/// Payload and result are separate.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextPage {
    pub(crate) about: String,
    pub(crate) bodies: String,
}

impl TextPage {
    pub(crate) async fn of(target: &Target, queue: &TaskQueue, id: TaskId) -> Result<Self, Failure> {
        let mut stored = existing(queue, id).await?;
        let bodies = [("payload", stored.payload.take()), ("result", stored.result.take())];
        let body =
            |(name, body): (&str, Option<Json>)| Some(format!("{name:11} {}\n", words::line(body?.as_str())));
        let bodies: String = bodies.into_iter().filter_map(body).collect();
        let overview = queue.overview().await?;
        let explanation_text = why::explanation_text(target, queue, &overview, &stored).await?;
        let about = format!("{}\n{explanation_text}\n", text(&stored, &overview.settings));
        Ok(Self { about, bodies })
    }
}

fn text(stored: &Stored, settings: &Settings) -> String {
    let task = &stored.task;
    let mut page = String::new();
    let mut add_line = |name: &str, text: &str| {
        let _ = writeln!(page, "{name:11} {}", words::line(text));
    };
    add_line("task", &task.id.to_string());
    add_line("state", task.state.as_str());
    if let Some(reason) = &stored.why {
        add_line("why", &words::why(task, reason));
    }
    if let Some(stop) = task.stop {
        add_line("stop", &format!("its worker is asked to end it ({})", stop.as_str()));
    }
    add_line("kind", task.kind.as_str());
    for (name, text) in options(task) {
        add_line(name, &text);
    }
    for (name, at) in times(task) {
        add_line(name, &words::time(at));
    }
    add_line("attempts", &attempts(task));
    add_line("policy", &policy(task, settings));
    if let Some(worker) = task.worker {
        add_line("worker", &worker.to_string());
    }
    if let Some(at) = &task.progress {
        add_line("progress", &words::progress(at));
    }
    for run in &task.history {
        let error = run.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
        let began = run.leased.map_or("?".into(), words::time);
        let worker = run.worker.map(|worker| format!(", worker {worker}")).unwrap_or_default();
        let (number, end) = (run.token.attempt, words::end(run.end));
        add_line("", &format!("{number}. {began} to {}{worker}, {end}{error}", words::time(run.ended)));
    }
    if let Some(error) = &task.error {
        add_line("error", error);
    }
    for (n, text) in log_lines(&stored.log).into_iter().enumerate() {
        add_line(if n == 0 { "log" } else { "" }, &text);
    }
    for (name, body) in [("payload", &stored.payload), ("result", &stored.result)] {
        if let Some(body) = body {
            add_line(name, body.as_str());
        }
    }
    page
}

/// With the attempt of each line, and the number of lines that are not stored.
fn log_lines(log: &[LogLine]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut before: HashMap<Token, u32> = HashMap::new();
    for line in log {
        let last = before.insert(line.token, line.number).unwrap_or(0);
        let missing = line.number.saturating_sub(last + 1);
        if missing > 0 {
            lines.push(format!("[{missing} lines of {} are not stored]", words::log_source(line)));
        }
        lines.push(words::log_line(line));
    }
    lines
}

fn options(task: &StoredTask) -> Vec<(&'static str, String)> {
    let mut options = Vec::new();
    if task.priority != 0 {
        options.push(("priority", task.priority.to_string()));
    }
    if let Some(key) = &task.key {
        options.push(("key", format!("{key}{}", if task.ordered { ", in order" } else { "" })));
    }
    if let Some(unique) = &task.unique {
        let is_held = if task.holds_name { "" } else { " (not any more)" };
        options.push(("unique", format!("{}{is_held}", unique.name)));
    }
    if task.weight != 1 {
        options.push(("weight", task.weight.to_string()));
    }
    if !task.tags.is_empty() {
        let tags: Vec<_> = task.tags.iter().map(ToString::to_string).collect();
        options.push(("tags", tags.join(", ")));
    }
    if let Some(nominal) = &task.schedule {
        options.push(("schedule", format!("{} for {}", nominal.schedule, words::time(nominal.at))));
    }
    options
}

fn times(task: &StoredTask) -> impl Iterator<Item = (&'static str, Micros)> {
    let not_before = Some(task.not_before).filter(|at| *at > task.added);
    [
        ("added", Some(task.added)),
        ("not before", not_before),
        ("deadline", task.deadline),
        ("leased", task.leased),
        ("ended", task.ended),
    ]
    .into_iter()
    .filter_map(|(name, at)| Some((name, at?)))
}

/// The policy in force, and which parts the task or its kind sets.
fn policy(task: &StoredTask, settings: &Settings) -> String {
    let policy = settings.policy_of(task);
    let (own, of_kind) = (task.policy, settings.kinds.get(&task.kind).copied().unwrap_or_default());
    let source = |is_set: fn(&PolicyOverride) -> bool| match (is_set(&own), is_set(&of_kind)) {
        (true, _) => " (set by the task)",
        (false, true) => " (set by its kind)",
        (false, false) => "",
    };
    let timeout =
        policy.timeout.map_or("no timeout".into(), |timeout| format!("timeout {}", words::show(timeout)));
    [
        format!("max attempts {}{}", policy.max_attempts, source(|own| own.max_attempts.is_some())),
        format!("max retries {}{}", policy.max_retries, source(|own| own.max_retries.is_some())),
        format!("backoff {}{}", words::show(policy.backoff), source(|own| own.backoff.is_some())),
        format!("max backoff {}{}", words::show(policy.max_backoff), source(|own| own.max_backoff.is_some())),
        format!("{timeout}{}", source(|own| own.timeout.is_some())),
    ]
    .join(", ")
}

fn attempts(task: &StoredTask) -> String {
    let mut text = format!("{} begun, {} failed", task.token.attempt, task.failures);
    if task.retries > 0 {
        let _ = write!(text, ", {} asked to be run again", task.retries);
    }
    text
}
