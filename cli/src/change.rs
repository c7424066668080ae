//! The commands that change a queue for all shards. Each prints what is in force afterwards.

use interval_queue::{
    MaxRunning, Micros,
    contract::{Change, Memory},
    task_contract::Change as TasksChange,
};

use crate::{
    args::{Hold, Set, Target},
    duration::show,
    exit::{Failure, NOINPUT, print},
    rate::pace,
    tasks::pause_or_resume,
};

pub(crate) async fn pause(target: Target) -> Result<(), Failure> {
    let tasks = pause_or_resume(&target, TasksChange::Pause).await?;
    also_of_tasks(target, Change::Pause, tasks.then_some("stored tasks paused")).await
}

pub(crate) async fn resume(target: Target) -> Result<(), Failure> {
    let tasks = pause_or_resume(&target, TasksChange::Resume).await?;
    also_of_tasks(target, Change::Resume, tasks.then_some("stored tasks not paused")).await
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
