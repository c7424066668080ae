//! `tasks why`: explains what a task waits for, what is ahead of it and what happens next.

mod account;

use indicatif::HumanCount;
use interval_queue::{
    Micros,
    task_contract::{Overview, State, Stored, Task},
};
use serde_json::{Value, json};

use self::account::{Account, Asked, MAX_TASKS_READ};
use super::{
    ask::Tasks,
    json, task_args, task_words,
    workers::{described, progress},
};
use crate::{
    args::Target,
    duration::about,
    exit::{Failure, print},
    table::{named, room},
};

pub(super) async fn why(target: &Target, tasks: &Tasks, args: &task_args::One) -> Result<(), Failure> {
    let overview = tasks.look().await?.ok_or_else(|| tasks.missing())?;
    let stored = tasks.known(args.id).await?;
    let account = Asked { target, tasks, overview: &overview }.account(&stored).await?;
    if args.json {
        return print(&format!("{:#}", object(&stored.task, &account)));
    }
    print(&text(&stored.task, &account, overview.at, room()))
}

/// The explanation of a task without its id and state.
pub(super) async fn goes_on(
    target: &Target,
    tasks: &Tasks,
    overview: &Overview,
    stored: &Stored,
) -> Result<String, Failure> {
    let account = Asked { target, tasks, overview }.account(stored).await?;
    let text = text(&stored.task, &account, overview.at, usize::MAX);
    // The first two lines are the id and the state of the task.
    Ok(text.lines().skip(2).collect::<Vec<_>>().join("\n"))
}

fn text(task: &Task, account: &Account, now: Micros, room: usize) -> String {
    let named_line = |name: &str, text: &str| named(name, &task_words::line(text), room);
    let mut lines = vec![
        named_line("task", &format!("{}, {}", task.id, task.kind)),
        named_line("state", task.state.as_str()),
        named_line("why", &account.reason),
        named_line("next", &account.next),
    ];
    let when = |at: Micros| match at.get().checked_sub(now.get()) {
        Some(left) => format!("{}, in {}", task_words::time(at), about(Micros::new(left))),
        None => task_words::time(at),
    };
    lines.extend(account.by.map(|at| named_line("latest", &when(at))));
    if let Some(deadline) = task.deadline.filter(|_| !task.state.is_ended()) {
        let what =
            if task.state == State::Leased { "it is stopped" } else { "it fails if it has not started" };
        lines.push(named_line("deadline", &format!("{}: then {what}", when(deadline))));
    }
    for (n, one) in account.behind.iter().enumerate() {
        let since = one.leased.filter(|_| one.state == State::Leased);
        let since = since.map_or(String::new(), |at| format!(", for {}", about(now - at)));
        let far = one.progress.as_ref().filter(|_| one.state == State::Leased);
        let far = far.map_or(String::new(), |at| format!(", at {}", progress(at)));
        let error = one.error.as_ref().map_or(String::new(), |error| format!(": {error}"));
        let line = format!("{}, {}, {}{since}{far}{error}", one.id, one.kind, one.state);
        lines.push(named_line(if n == 0 { "ahead" } else { "" }, &line));
    }
    let more = match account.all_behind {
        Some(all) => all.saturating_sub(account.behind.len() as u64),
        None => 0,
    };
    if more > 0 {
        lines.push(named_line("", &format!("and {} more", HumanCount(more))));
    } else if account.all_behind.is_none() {
        lines.push(named_line("", &format!("and more: only {MAX_TASKS_READ} were read")));
    }
    lines.extend(account.workers.iter().map(|worker| named_line("worker", &described(worker, now))));
    lines.join("\n")
}

fn object(task: &Task, account: &Account) -> Value {
    json!({
        "task": json::row(task),
        "gate": account.gate,
        "reason": account.reason,
        "goes_on": account.next,
        "by_us": account.by.map(Micros::get),
        "behind": account.behind.iter().map(json::row).collect::<Vec<_>>(),
        "all_behind": account.all_behind,
        "workers": account.workers.iter().map(json::worker).collect::<Vec<_>>(),
    })
}
