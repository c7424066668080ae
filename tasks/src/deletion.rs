//! Deleting a queue.

use interval_queue::MaxRunning;
use interval_queue_task_contract::{
    Counted, Overview, PolicyOverride, Selector, Settings, SettingsChange, State, Verb,
};

use crate::{TaskQueue, error::Error};

impl TaskQueue {
    /// Deletes the queue's tasks with payloads and results, its schedules, pauses and settings. The
    /// rate stays: see [`remove_rate_limit`](Self::remove_rate_limit).
    ///
    /// It pauses the queue, cancels live tasks, purges all and restores default settings. Tasks
    /// added meanwhile may or may not be deleted. As for all purged tasks, ids stay for at least 20
    /// minutes, so a repeated `add` runs nothing again. Limits of single keys stay, except pauses.
    ///
    /// # Errors
    ///
    /// [`Conflict`](crate::ErrorKind::Conflict) if the queue is [in use](Self::in_use): nothing was
    /// deleted; or if a worker started meanwhile: the queue stays paused, and only tasks that had
    /// not started are deleted. Else as [`pause`](Self::pause).
    ///
    /// # Cancel safety
    ///
    /// If dropped, or after an error, the queue may be paused and partly deleted: repeat the call.
    pub async fn delete(&self) -> Result<(), Error> {
        refuse_in_use(&self.overview().await?)?;
        self.pause().await?;
        for schedule in self.schedules().await? {
            self.remove_schedule(schedule.name.as_str()).await?;
        }
        let left = State::ALL.into_iter().filter(|state| !state.is_ended()).collect::<Vec<_>>();
        self.change(&Selector::states(left), Verb::Cancel, false).await?;
        self.change(&Selector::default(), Verb::Purge, false).await?;
        let overview = self.overview().await?;
        refuse_in_use(&overview)?;
        for kind in overview.kinds.iter().filter(|row| row.paused) {
            self.pause_kind(kind.kind.as_str(), false).await?;
        }
        for paused in &overview.paused_keys {
            self.set_key_limit(paused.key.as_str(), None).await?;
        }
        let Settings { max_running: _, key_limit, ageing, keep, max_payload, policy, kinds: _ } =
            Settings::default();
        self.set(SettingsChange {
            max_running: MaxRunning::Unlimited,
            key_limit: Some(key_limit),
            ageing: Some(ageing),
            keep: Some(keep),
            max_payload: Some(max_payload),
            policy: Some(policy),
            kinds: overview
                .settings
                .kinds
                .into_keys()
                .map(|kind| (kind, PolicyOverride::default()))
                .collect(),
        })
        .await?;
        self.resume().await
    }

    /// Why the queue cannot be [deleted](Self::delete): a worker serves it, or a task runs. `None`:
    /// it can. A worker that has left counts for a second.
    pub fn in_use(overview: &Overview) -> Option<String> {
        let runs = overview.counts.iter().filter(|(_, counted, _)| *counted == Counted::Now(State::Leased));
        let leased: u64 = runs.map(|(.., number)| number).sum();
        match (overview.workers, leased) {
            (0, 0) => None,
            (0, 1) => Some("the worker of its only run is lost: start one, which takes the task back".into()),
            (0, runs) => {
                Some(format!("the workers of {runs} runs are lost: start one, which takes the tasks back"))
            }
            (1, _) => Some("a worker serves its tasks: stop it first".into()),
            (workers, _) => Some(format!("{workers} workers serve its tasks: stop them first")),
        }
    }
}

fn refuse_in_use(overview: &Overview) -> Result<(), Error> {
    TaskQueue::in_use(overview).map_or(Ok(()), |why| Err(Error::in_use(&why)))
}
