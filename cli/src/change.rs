//! The commands that change a queue for all shards. Each prints what is in force afterwards.

use interval_queue::{MaxRunning, Micros, Snapshot};
use interval_queue_documents::words::about;
use interval_queue_tasks::{Key, Kind, Overview, Selector, TaskQueue};

use crate::{
    args::{Halt, Hold, Set, Target},
    exit::{Failure, NOINPUT, print, report},
    rate::pace,
};

pub(crate) async fn halt(halt: Halt, pauses: bool) -> Result<(), Failure> {
    if !halt.kinds.is_empty() || !halt.keys.is_empty() {
        return parts(&halt, pauses).await;
    }
    let target = &halt.target;
    let has_tasks = pause_or_resume(target, pauses).await?;
    let operator = target.operator().await?;
    let changed = match pauses {
        true => target.changed(operator.pause()).await,
        false => target.changed(operator.resume()).await,
    };
    let tasks = if pauses { "stored tasks paused" } else { "stored tasks not paused" };
    match changed {
        Err(failure) if failure.code == NOINPUT && has_tasks => {
            print(&format!("{}: no rate, {tasks}", target.queue))
        }
        // A pause may be set before the first task is added.
        Err(failure) if failure.code == NOINPUT && pauses && target.store.task_queues().await?.is_some() => {
            target.created_tasks().await?.pause().await?;
            print(&format!("{}: no rate, {tasks}; the queue is new", target.queue))
        }
        changed => print_changed(target, &changed?, has_tasks.then_some(tasks)),
    }
}

/// Returns whether the queue has stored tasks.
pub(crate) async fn pause_or_resume(target: &Target, pauses: bool) -> Result<bool, Failure> {
    let Some((queue, _)) = target.tasks_if_any().await? else { return Ok(false) };
    if pauses {
        queue.pause().await?
    } else {
        queue.resume().await?
    }
    Ok(true)
}

enum Part<'a> {
    Kind(&'a Kind),
    Key(&'a Key),
}

impl Part<'_> {
    fn name(&self) -> String {
        match self {
            Self::Kind(kind) => format!("kind {:?}", kind.as_str()),
            Self::Key(key) => format!("key {:?}", key.as_str()),
        }
    }

    fn is_paused(&self, overview: &Overview) -> bool {
        match self {
            Self::Kind(kind) => overview.kinds.iter().any(|row| row.paused && row.kind == **kind),
            Self::Key(key) => overview.paused_keys.iter().any(|paused| paused.key == **key),
        }
    }

    async fn set_paused(&self, queue: &TaskQueue, pauses: bool) -> Result<(), Failure> {
        match self {
            Self::Kind(kind) => queue.pause_kind(kind.as_str(), pauses).await?,
            Self::Key(key) => queue.set_key_limit(key.as_str(), pauses.then_some(0)).await?,
        }
        Ok(())
    }

    /// Whether tasks of the kind or key are stored, or a worker serves the kind. Otherwise the name
    /// may be mistyped.
    async fn is_known(&self, queue: &TaskQueue) -> Result<bool, Failure> {
        match self {
            Self::Kind(kind) => {
                let overview = queue.overview().await?;
                let is_served =
                    overview.kinds.iter().any(|row| row.kind == **kind && row.served_until > Micros::ZERO);
                Ok(is_served || overview.counts.iter().any(|(of, ..)| of == *kind))
            }
            Self::Key(key) => {
                let selector = Selector { key: Some((*key).clone()), ..Selector::default() };
                Ok(queue.count(&selector, 1).await? > 0)
            }
        }
    }
}

/// A pause may create the queue.
async fn parts(halt: &Halt, pauses: bool) -> Result<(), Failure> {
    let target = &halt.target;
    let (queue, before) = match target.tasks_if_any().await? {
        None if pauses => {
            target.created_tasks().await?;
            target.tasks_and_overview().await?
        }
        None => return Err(target.no_tasks()),
        Some(found) => found,
    };
    for part in halt.kinds.iter().map(Part::Kind).chain(halt.keys.iter().map(Part::Key)) {
        part.set_paused(&queue, pauses).await?;
        let now = match (pauses, part.is_paused(&before)) {
            (true, _) => "paused",
            (false, true) => "resumed",
            (false, false) => "were not paused",
        };
        let name = part.name();
        print(&format!("{}: stored tasks of {name} {now}", target.queue))?;
        if pauses && !part.is_known(&queue).await? {
            report(&format!("warning: no task of {name} is stored now"));
        }
    }
    Ok(())
}

pub(crate) async fn hold(hold: Hold) -> Result<(), Failure> {
    let operator = hold.target.operator().await?;
    let changed = hold.target.changed(operator.hold(hold.duration)).await?;
    print_changed(&hold.target, &changed, None)
}

pub(crate) async fn set(set: Set) -> Result<(), Failure> {
    let (target, limit) = (&set.target, set.pace.pace());
    set.pace.rates()?;
    let max_running = set.max_running.unwrap_or(MaxRunning::Keep);
    let operator = target.operator().await?;
    let changed = match (target.changed(operator.set(limit.clone(), max_running)).await, limit) {
        // A queue of stored tasks that has no rate gets one.
        (Err(failure), Some(limit)) if failure.code == NOINPUT && target.tasks_if_any().await?.is_some() => {
            target.changed(operator.create(limit, max_running)).await?
        }
        (changed, _) => changed?,
    };
    print_changed(target, &changed, None)
}

pub(crate) async fn reset(target: Target) -> Result<(), Failure> {
    let operator = target.operator().await?;
    let changed = target.changed(operator.reset()).await?;
    print_changed(&target, &changed, None)
}

fn print_changed(target: &Target, changed: &Snapshot, tasks: Option<&str>) -> Result<(), Failure> {
    let tasks = tasks.map_or(String::new(), |tasks| format!(", {tasks}"));
    print(&format!("{}: {}{tasks}", target.queue, in_force(changed)))
}

fn in_force(snapshot: &Snapshot) -> String {
    let record = &snapshot.record;
    let mut parts = vec![pace(&record.meters.rates())];
    parts.push(running(record.max_running));
    if record.paused {
        parts.push("paused".into());
    }
    if record.held_until > snapshot.at {
        parts.push(format!("held for another {}", about(record.held_until - snapshot.at)));
    }
    if parts.len() == 2 {
        parts.push("neither paused nor held".into());
    }
    parts.join(", ")
}

pub(crate) fn running(max_running: Option<u32>) -> String {
    max_running.map_or("any number running".into(), |limit| format!("at most {limit} running"))
}
