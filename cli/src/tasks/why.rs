//! `tasks why`: explains what a task waits for, what is ahead of it and what happens next.

use interval_queue::Micros;
use interval_queue_documents::{Explanation, MAX_READ, words};
use interval_queue_tasks::{Overview, State, Stored, StoredTask, TaskQueue, Why};

use super::{opened::existing, task_args, workers::described};
use crate::{
    args::Target,
    exit::{Failure, print},
    json_output::print_json,
    table::{named, room},
};

pub(super) async fn why(target: &Target, args: &task_args::One) -> Result<(), Failure> {
    let (queue, overview) = target.tasks_and_overview().await?;
    let stored = existing(&queue, args.id.id(&queue).await?).await?;
    let explanation = explain(target, &queue, &overview, &stored).await?;
    if args.json {
        return print_json(&explanation.document(&stored.task));
    }
    print(&text(&stored.task, &explanation, overview.at, room()))
}

/// The text lacks id and state.
pub(super) async fn explanation_text(
    target: &Target,
    queue: &TaskQueue,
    overview: &Overview,
    stored: &Stored,
) -> Result<String, Failure> {
    let explanation = explain(target, queue, overview, stored).await?;
    let text = text(&stored.task, &explanation, overview.at, usize::MAX);
    Ok(text.lines().skip(2).collect::<Vec<_>>().join("\n"))
}

pub(super) async fn explain(
    target: &Target,
    queue: &TaskQueue,
    overview: &Overview,
    stored: &Stored,
) -> Result<Explanation, Failure> {
    // Only a ready task can wait for the rate.
    let rate = match stored.why {
        Some(Why::Next) => target.snapshot().await?,
        _ => None,
    };
    Ok(Explanation::of(queue, overview, rate.as_ref(), stored).await?)
}

fn text(task: &StoredTask, explanation: &Explanation, now: Micros, room: usize) -> String {
    let named_line = |name: &str, text: &str| named(name, &words::line(text), room);
    let mut lines = vec![
        named_line("task", &format!("{}, {}", task.id, task.kind)),
        named_line("state", task.state.as_str()),
        named_line("why", &explanation.reason),
        named_line("next", &explanation.next),
    ];
    let when = |at: Micros| match at.get().checked_sub(now.get()) {
        Some(left) => format!("{}, in {}", words::time(at), words::about(Micros::new(left))),
        None => words::time(at),
    };
    lines.extend(explanation.by.map(|at| named_line("latest", &when(at))));
    if let Some(deadline) = task.deadline.filter(|_| !task.state.is_ended()) {
        let what =
            if task.state == State::Leased { "it is stopped" } else { "it fails if it has not started" };
        lines.push(named_line("deadline", &format!("{}: then {what}", when(deadline))));
    }
    for (n, one) in explanation.ahead.iter().enumerate() {
        let since = one.leased.filter(|_| one.state == State::Leased);
        let since = since.map_or(String::new(), |at| format!(", for {}", words::about(now - at)));
        let far = one.progress.as_ref().filter(|_| one.state == State::Leased);
        let far = far.map_or(String::new(), |at| format!(", at {}", words::progress(at)));
        let error = one.error.as_ref().map_or(String::new(), |error| format!(": {error}"));
        let line = format!("{}, {}, {}{since}{far}{error}", one.id, one.kind, one.state);
        lines.push(named_line(if n == 0 { "ahead" } else { "" }, &line));
    }
    let more = match explanation.all_ahead {
        Some(all) => all.saturating_sub(explanation.ahead.len() as u64),
        None => 0,
    };
    if more > 0 {
        lines.push(named_line("", &format!("and {} more", words::number(more))));
    } else if explanation.all_ahead.is_none() {
        lines.push(named_line("", &format!("and more: only {MAX_READ} were read")));
    }
    lines.extend(explanation.workers.iter().map(|worker| named_line("worker", &described(worker, now))));
    lines.join("\n")
}
