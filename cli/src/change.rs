//! The commands that change a queue for all shards. Each prints what is in force afterwards.

use interval_queue::{
    MaxRunning, Micros, OnExisting,
    contract::{Change, Memory},
    task_contract::{Change as TasksChange, KindRow, Overview, Selector},
};

use crate::{
    args::{Halt, Hold, Set, Target},
    duration::about,
    exit::{Failure, NOINPUT, print, report},
    rate::pace,
    tasks::{Tasks, pause_or_resume},
};

pub(crate) async fn pause(halt: Halt) -> Result<(), Failure> {
    if halt.is_of_parts() {
        return parts(&halt, true).await;
    }
    let tasks = pause_or_resume(&halt.target, TasksChange::Pause).await?;
    let paused = also_of_tasks(&halt.target, Change::Pause, tasks.then_some("stored tasks paused")).await;
    match paused {
        // A pause may be set before the first task is added.
        Err(failure) if failure.code == NOINPUT && create(&halt.target, TasksChange::Pause).await? => {
            print(&format!("{}: no rate, stored tasks paused; the queue is new", halt.target.queue))
        }
        paused => paused,
    }
}

pub(crate) async fn resume(halt: Halt) -> Result<(), Failure> {
    if halt.is_of_parts() {
        return parts(&halt, false).await;
    }
    let tasks = pause_or_resume(&halt.target, TasksChange::Resume).await?;
    also_of_tasks(&halt.target, Change::Resume, tasks.then_some("stored tasks not paused")).await
}

/// Pauses or resumes kinds and keys of stored tasks.
async fn parts(halt: &Halt, pauses: bool) -> Result<(), Failure> {
    let kinds = halt
        .kinds
        .iter()
        .map(|kind| (format!("kind {:?}", kind.as_str()), TasksChange::Kind(kind.clone(), pauses)));
    let keys = halt
        .keys
        .iter()
        .map(|key| (format!("key {:?}", key.as_str()), TasksChange::Key(key.clone(), pauses.then_some(0))));
    let tasks = Tasks::open(&halt.target).await?;
    let before = tasks.overview().await?;
    for (what, change) in kinds.chain(keys) {
        let was_paused = before.as_ref().is_some_and(|before| is_paused(before, &change));
        tasks.change(change.clone()).await?;
        let now = match (pauses, was_paused) {
            (true, _) => "paused",
            (false, true) => "resumed",
            (false, false) => "were not paused",
        };
        print(&format!("{}: stored tasks of {what} {now}", halt.target.queue))?;
        if pauses && !is_known(&tasks, &change).await? {
            report(&format!("warning: no task of {what} is stored now"));
        }
    }
    Ok(())
}

/// Whether the subject of a change is paused.
fn is_paused(overview: &Overview, change: &TasksChange) -> bool {
    match change {
        TasksChange::Kind(kind, _) => overview.kinds.iter().any(|row| row.paused && row.kind == *kind),
        TasksChange::Key(key, _) => overview.paused_keys.iter().any(|paused| paused.key == *key),
        _ => overview.paused,
    }
}

/// Whether tasks of the kind or key are stored, or a worker serves the kind. Otherwise the name may
/// be mistyped.
async fn is_known(tasks: &Tasks, change: &TasksChange) -> Result<bool, Failure> {
    match change {
        TasksChange::Kind(kind, _) => {
            let overview = tasks.overview().await?.ok_or_else(|| tasks.missing())?;
            let is_served = |row: &KindRow| row.kind == *kind && row.served_until > Micros::ZERO;
            Ok(overview.kinds.iter().any(is_served) || overview.counts.iter().any(|(of, ..)| of == kind))
        }
        TasksChange::Key(key, _) => {
            tasks.has_some(Selector { key: Some(key.clone()), ..Selector::default() }).await
        }
        _ => Ok(true),
    }
}

/// Creates the queue of tasks by a change. Returns false if the store keeps no tasks.
async fn create(target: &Target, change: TasksChange) -> Result<bool, Failure> {
    let Some(tasks) = Tasks::open_if_kept(target).await? else { return Ok(false) };
    tasks.change(change).await.map(|()| true)
}

/// Changes the rate limit too. A queue of stored tasks need not have one.
async fn also_of_tasks(target: &Target, change: Change, tasks: Option<&str>) -> Result<(), Failure> {
    let changed = match (target.change(change).await, tasks) {
        (Err(failure), Some(tasks)) if failure.code == NOINPUT => {
            return print(&format!("{}: no rate, {tasks}", target.queue));
        }
        (changed, _) => changed?,
    };
    let tasks = tasks.map_or(String::new(), |tasks| format!(", {tasks}"));
    print(&format!("{}: {}{tasks}", target.queue, in_force(&changed.memory)))
}

pub(crate) async fn hold(hold: Hold) -> Result<(), Failure> {
    change(hold.target, Change::Hold(Micros::from_duration(hold.duration))).await
}

pub(crate) async fn set(set: Set) -> Result<(), Failure> {
    let rates = set.pace.rates()?;
    let max_running = set.max_running.unwrap_or(MaxRunning::Keep);
    let changed = match set.target.change(Change::Set { rates, max_running }).await {
        // A queue of stored tasks that has no rate gets one.
        Err(failure) if failure.code == NOINPUT && rates.is_some() && has_tasks(&set.target).await? => {
            let on_existing = OnExisting::Replace;
            set.target.change(Change::Open { rates, max_running, on_existing }).await?
        }
        changed => changed?,
    };
    print(&format!("{}: {}", set.target.queue, in_force(&changed.memory)))
}

async fn has_tasks(target: &Target) -> Result<bool, Failure> {
    match Tasks::open_if_kept(target).await? {
        Some(tasks) => tasks.is_there().await,
        None => Ok(false),
    }
}

pub(crate) async fn reset(target: Target) -> Result<(), Failure> {
    change(target, Change::Reset).await
}

async fn change(target: Target, change: Change) -> Result<(), Failure> {
    let changed = target.change(change).await?;
    print(&format!("{}: {}", target.queue, in_force(&changed.memory)))
}

/// Formats the settings, the pause and the hold in one line.
fn in_force(memory: &Memory) -> String {
    let mut parts = vec![pace(&memory.meters.rates())];
    parts.push(running(memory.max_running));
    if memory.paused {
        parts.push("paused".into());
    }
    if memory.held_until > memory.at {
        parts.push(format!("held for another {}", about(memory.held_until - memory.at)));
    }
    if parts.len() == 2 {
        parts.push("neither paused nor held".into());
    }
    parts.join(", ")
}

/// Formats the running limit.
pub(crate) fn running(max_running: Option<u32>) -> String {
    max_running.map_or("any number running".into(), |limit| format!("at most {limit} running"))
}
