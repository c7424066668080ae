//! Schedules that are due: whichever worker hears of one first makes its task.

use std::{collections::HashMap, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use interval_queue_task_contract::{Command, DueSchedule, Fired, Key, Read, Reply, Task};

use super::core::Core;
use crate::{error::Error, queue::unexpected, schedule::Definition};

/// What a worker does for the schedules it was told of. Dropped in the middle, others do it.
#[derive(Default)]
pub(super) struct Schedules {
    under_way: Option<BoxFuture<'static, Vec<Outcome>>>,
    /// Those of which it was told that they cannot be made, by their revision.
    told: HashMap<Key, u64>,
}

/// What became of one.
struct Outcome {
    due: DueSchedule,
    /// With how many tasks it makes, if it does.
    fired: Result<(Fired, usize), Error>,
}

impl Schedules {
    /// Takes in what a step was told. While something is under way, a later step is told again.
    pub(super) fn hear(&mut self, core: &Arc<Core>, due: Vec<DueSchedule>) {
        if self.under_way.is_none() && !due.is_empty() {
            self.under_way = Some(fire_all(core.clone(), due).boxed());
        }
    }

    /// Ends when something was under way and is done.
    pub(super) async fn done(&mut self, core: &Core) {
        let outcomes = match &mut self.under_way {
            Some(under_way) => under_way.await,
            None => std::future::pending().await,
        };
        self.under_way = None;
        for Outcome { due, fired } in outcomes {
            let row = due.schedule;
            match fired {
                Ok((fired, made)) => {
                    self.told.remove(&row.name);
                    let made = if fired == Fired::Made { made } else { 0 };
                    core.queue.shared.telemetry.fired(&row.name, due.at, fired, made);
                    // The store knows when the next one is.
                    core.machine().nudge();
                }
                Err(error) => {
                    if self.told.insert(row.name.clone(), row.revision) != Some(row.revision) {
                        core.queue.shared.telemetry.not_fired(&row.name, due.at, &error);
                    }
                }
            }
        }
    }
}

async fn fire_all(core: Arc<Core>, due: Vec<DueSchedule>) -> Vec<Outcome> {
    let mut outcomes = Vec::with_capacity(due.len());
    for due in due {
        let fired = fire(&core, &due).await;
        outcomes.push(Outcome { due, fired });
    }
    outcomes
}

async fn fire(core: &Core, due: &DueSchedule) -> Result<(Fired, usize), Error> {
    let definition = Definition::read(&due.schedule)?;
    let last = if definition.follows() { last(core, due).await? } else { None };
    let fire = definition.fire(due, last.as_ref())?;
    let made = fire.made.len();
    match core.queue.shared.command(Command::Fire(fire)).await? {
        Reply::Fired(fired) => Ok((fired, made)),
        other => Err(unexpected(&other)),
    }
}

/// The task that it made last, if that is stored.
async fn last(core: &Core, due: &DueSchedule) -> Result<Option<Task>, Error> {
    let Some(id) = due.schedule.last else { return Ok(None) };
    match core.queue.shared.command(Command::Read(Read::Tasks(vec![id]))).await? {
        Reply::Tasks(tasks) => Ok(tasks.into_iter().next().flatten().map(|stored| stored.task)),
        other => Err(unexpected(&other)),
    }
}
