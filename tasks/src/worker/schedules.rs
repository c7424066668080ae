//! Due schedules: the first worker that learns of one adds its task.

use std::{collections::HashMap, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use interval_queue::{StateError, contract::outage::Outages};
use interval_queue_task_contract::{Command, DueSchedule, Fired, Key, Read, Reply, Task};

use super::{
    core::Core,
    failure::{self, WorkerFailure},
    outage::is_of_the_store,
};
use crate::{error::Error, queue::unexpected, schedule::Definition};

/// If dropped, other workers fire them.
#[derive(Default)]
pub(super) struct Schedules {
    under_way: Option<BoxFuture<'static, Vec<Outcome>>>,
    /// The revision that failed to fire, and its outages.
    failing: HashMap<Key, (u64, Outages)>,
    /// The revision that can never fire.
    broken: HashMap<Key, u64>,
    /// The last step sent before the last firing ended: its reply may not show the result.
    fired_after: u64,
    /// By the last answered step, all due schedules have added their tasks.
    is_completed: bool,
}

struct Outcome {
    due: DueSchedule,
    /// With the number of tasks, if it succeeded.
    fired: Result<(Fired, usize), Error>,
}

impl Schedules {
    /// During a firing, due schedules are ignored: a later answer names them again.
    pub(super) fn absorb(&mut self, core: &Arc<Core>, sequence: u64, due: Vec<DueSchedule>) {
        let is_broken =
            |due: &DueSchedule| self.broken.get(&due.schedule.name) == Some(&due.schedule.revision);
        // Not every answer names due schedules, so a firing under way counts as due. A broken
        // schedule does not.
        let has_fired = self.under_way.is_none() && sequence > self.fired_after;
        self.is_completed = has_fired && due.iter().all(is_broken);
        if self.under_way.is_none() && !due.is_empty() {
            self.under_way = Some(fire_all(core.clone(), due).boxed());
        }
    }

    /// All due schedules have added their tasks, and the worker has polled since.
    pub(super) fn is_completed(&self) -> bool {
        self.is_completed
    }

    /// Completes once a firing's outcomes are applied.
    pub(super) async fn done(&mut self, core: &Core) {
        let outcomes = match &mut self.under_way {
            Some(under_way) => under_way.await,
            None => std::future::pending().await,
        };
        self.under_way = None;
        self.fired_after = core.machine().connection.sequence;
        for Outcome { due, fired } in outcomes {
            let row = due.schedule;
            match fired {
                Ok((fired, made)) => {
                    if let Some((_, outages)) = self.failing.get_mut(&row.name) {
                        outages.answered(core.now());
                    }
                    self.is_completed = false;
                    self.broken.remove(&row.name);
                    let made = if fired == Fired::Made { made } else { 0 };
                    core.queue.shared.telemetry.fired(&row.name, due.at, fired, made);
                    core.machine().notify();
                }
                Err(error) => {
                    let new = || (row.revision, Outages::default());
                    let failing = self.failing.entry(row.name.clone()).or_insert_with(new);
                    if failing.0 != row.revision {
                        *failing = new();
                    }
                    let passes = error.state().is_some_and(StateError::is_retryable);
                    if !passes {
                        self.broken.insert(row.name.clone(), row.revision);
                    }
                    if failing.1.failed(is_of_the_store(&error), core.now(), core.now()) {
                        core.queue.shared.telemetry.not_fired(&row.name, due.at, &error);
                        failure::report(core, WorkerFailure::Schedule { name: row.name, error });
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

/// `None`: it is no longer stored.
async fn last(core: &Core, due: &DueSchedule) -> Result<Option<Task>, Error> {
    let Some(id) = due.schedule.last else { return Ok(None) };
    match core.queue.shared.command(Command::Read(Read::Tasks(vec![id]))).await? {
        Reply::Tasks(tasks) => Ok(tasks.into_iter().next().flatten().map(|stored| stored.task)),
        other => Err(unexpected(&other)),
    }
}
