//! The commands that change a queue for all shards. Each prints what is in force afterwards.

use interval_queue::{
    MaxRunning, Micros,
    contract::{Change, Memory},
    task_contract::Change as TasksChange,
};

use crate::{
    args::{Halt, Hold, Set, Target},
    duration::show,
    exit::{Failure, NOINPUT, print},
    rate::pace,
    tasks::{no_tasks, pause_or_resume},
};

pub(crate) async fn pause(halt: Halt) -> Result<(), Failure> {
    if halt.is_of_parts() {
        return parts(&halt, true).await;
    }
    let tasks = pause_or_resume(&halt.target, TasksChange::Pause).await?;
    also_of_tasks(halt.target, Change::Pause, tasks.then_some("stored tasks paused")).await
}

pub(crate) async fn resume(halt: Halt) -> Result<(), Failure> {
    if halt.is_of_parts() {
        return parts(&halt, false).await;
    }
    let tasks = pause_or_resume(&halt.target, TasksChange::Resume).await?;
    also_of_tasks(halt.target, Change::Resume, tasks.then_some("stored tasks not paused")).await
}

/// Kinds and keys of stored tasks.
async fn parts(halt: &Halt, pauses: bool) -> Result<(), Failure> {
    let kinds = halt
        .kinds
        .iter()
        .map(|kind| (format!("kind {:?}", kind.as_str()), TasksChange::Kind(kind.clone(), pauses)));
    let keys = halt
        .keys
        .iter()
        .map(|key| (format!("key {:?}", key.as_str()), TasksChange::Key(key.clone(), pauses.then_some(0))));
    for (what, change) in kinds.chain(keys) {
        if !pause_or_resume(&halt.target, change).await? {
            return Err(no_tasks(&halt.target.queue));
        }
        let now = if pauses { "paused" } else { "not paused" };
        print(&format!("{}: stored tasks of {what} {now}", halt.target.queue))?;
    }
    Ok(())
}

/// A queue of stored tasks need not have a pace.
async fn also_of_tasks(target: Target, change: Change, tasks: Option<&str>) -> Result<(), Failure> {
    let changed = match (target.change(change).await, tasks) {
        (Err(failure), Some(tasks)) if failure.code == NOINPUT => {
            return print(&format!("{}: no pace, {tasks}", target.queue));
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
    change(set.target, Change::Set { rates, max_running }).await
}

pub(crate) async fn reset(target: Target) -> Result<(), Failure> {
    change(target, Change::Reset).await
}

async fn change(target: Target, change: Change) -> Result<(), Failure> {
    let changed = target.change(change).await?;
    print(&format!("{}: {}", target.queue, in_force(&changed.memory)))
}

/// Settings, pause and hold in one line.
fn in_force(memory: &Memory) -> String {
    let mut parts = vec![pace(&memory.meters.rates())];
    parts.push(running(memory.max_running));
    if memory.paused {
        parts.push("paused".into());
    }
    if memory.held_until > memory.at {
        parts.push(format!("held for another {}", show(memory.held_until - memory.at)));
    }
    if parts.len() == 2 {
        parts.push("neither paused nor held".into());
    }
    parts.join(", ")
}

/// The running limit in words.
pub(crate) fn running(max_running: Option<u32>) -> String {
    max_running.map_or("any number running".into(), |limit| format!("at most {limit} running"))
}
