//! `tasks why`: explains what a task waits for, what is ahead of it and what happens next.

mod explanation;

use indicatif::HumanCount;
use interval_queue::{
    Micros,
    task_contract::{Overview, State, Stored, Task},
};
use serde_json::{Value, json};

use self::explanation::{Explainer, Explanation, MAX_TASKS_READ};
use super::{
    json,
    queue_tasks::Tasks,
    task_args, task_words,
    workers::{described, progress},
};
use crate::{
    args::Target,
    duration::about,
    exit::{Failure, print},
    table::{named, room},
};

pub(super) async fn why(target: &Target, tasks: &Tasks, args: &task_args::One) -> Result<(), Failure> {
    let overview = tasks.overview().await?.ok_or_else(|| tasks.missing())?;
    let stored = tasks.existing(args.id).await?;
    let explanation = Explainer { target, tasks, overview: &overview }.explain(&stored).await?;
    if args.json {
        return print(&format!("{:#}", object(&stored.task, &explanation)));
    }
    print(&text(&stored.task, &explanation, overview.at, room()))
}

/// The explanation of a task without its id and state.
pub(super) async fn explanation_text(
    target: &Target,
    tasks: &Tasks,
    overview: &Overview,
    stored: &Stored,
) -> Result<String, Failure> {
    let explanation = Explainer { target, tasks, overview }.explain(stored).await?;
    let text = text(&stored.task, &explanation, overview.at, usize::MAX);
    // The first two lines are the id and the state of the task.
    Ok(text.lines().skip(2).collect::<Vec<_>>().join("\n"))
}

fn text(task: &Task, explanation: &Explanation, now: Micros, room: usize) -> String {
    let named_line = |name: &str, text: &str| named(name, &task_words::line(text), room);
    let mut lines = vec![
        named_line("task", &format!("{}, {}", task.id, task.kind)),
        named_line("state", task.state.as_str()),
        named_line("why", &explanation.reason),
        named_line("next", &explanation.next),
    ];
    let when = |at: Micros| match at.get().checked_sub(now.get()) {
        Some(left) => format!("{}, in {}", task_words::time(at), about(Micros::new(left))),
        None => task_words::time(at),
    };
    lines.extend(explanation.by.map(|at| named_line("latest", &when(at))));
    if let Some(deadline) = task.deadline.filter(|_| !task.state.is_ended()) {
        let what =
            if task.state == State::Leased { "it is stopped" } else { "it fails if it has not started" };
        lines.push(named_line("deadline", &format!("{}: then {what}", when(deadline))));
    }
    for (n, one) in explanation.ahead.iter().enumerate() {
        let since = one.leased.filter(|_| one.state == State::Leased);
        let since = since.map_or(String::new(), |at| format!(", for {}", about(now - at)));
        let far = one.progress.as_ref().filter(|_| one.state == State::Leased);
        let far = far.map_or(String::new(), |at| format!(", at {}", progress(at)));
        let error = one.error.as_ref().map_or(String::new(), |error| format!(": {error}"));
        let line = format!("{}, {}, {}{since}{far}{error}", one.id, one.kind, one.state);
        lines.push(named_line(if n == 0 { "ahead" } else { "" }, &line));
    }
    let more = match explanation.all_ahead {
        Some(all) => all.saturating_sub(explanation.ahead.len() as u64),
        None => 0,
    };
    if more > 0 {
        lines.push(named_line("", &format!("and {} more", HumanCount(more))));
    } else if explanation.all_ahead.is_none() {
        lines.push(named_line("", &format!("and more: only {MAX_TASKS_READ} were read")));
    }
    lines.extend(explanation.workers.iter().map(|worker| named_line("worker", &described(worker, now))));
    lines.join("\n")
}

fn object(task: &Task, explanation: &Explanation) -> Value {
    json!({
        "task": json::row(task),
        "gate": explanation.gate,
        "reason": explanation.reason,
        "goes_on": explanation.next,
        "by_us": explanation.by.map(Micros::get),
        "behind": explanation.ahead.iter().map(json::row).collect::<Vec<_>>(),
        "all_behind": explanation.all_ahead,
        "workers": explanation.workers.iter().map(json::worker).collect::<Vec<_>>(),
    })
}
