//! The queues that a store keeps: which there are, and how those go that nobody uses any more.

use std::{sync::Arc, time::Duration};

use interval_queue_contract::{
    Change, Command, Deletion, Memory, Micros, QueueName, SharedState, StateError, StateErrorKind,
};

use crate::{Store, error::Error};

impl Store {
    /// The names of the queues on it, sorted.
    ///
    /// # Errors
    ///
    /// As [`pace`](Self::pace).
    pub async fn queues(&self) -> Result<Vec<QueueName>, Error> {
        Ok(self.pace().await?.queues().await?)
    }

    /// Deletes a queue: nothing of it is stored any more, and one that is opened under its name is new.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), interval_queue::Error> {
    /// use std::time::Duration;
    /// use interval_queue::{Deletion, IntervalQueue, connect};
    ///
    /// let store = connect("memory:").await?;
    /// let customer = IntervalQueue::builder("customer 7").interval(Duration::from_secs(1));
    /// customer.open(&store).await?;
    ///
    /// store.delete(&"customer 7".parse()?, Deletion::Unused).await?;
    /// assert!(store.queues().await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A shard that still has the queue open knows nothing of it. Its next job brings the queue back, as
    /// after any loss of the record: with its tickets and settings, an interval and the longest lead later.
    /// So do the jobs that wait, if it was deleted [by force](Deletion::Forced). A process that opens the
    /// name before that begins at once, since the slots that were granted are known to nobody else.
    ///
    /// # Errors
    ///
    /// [`State`](crate::ErrorKind::State), whose [`state`](Error::state) is of the kind
    /// [`NotFound`](StateErrorKind::NotFound) if there is no such queue, and
    /// [`Conflict`](StateErrorKind::Conflict) if it is used, naming the shards that have jobs. Otherwise as
    /// [`pace`](Self::pace); after a [`TimedOut`](StateErrorKind::TimedOut) it may be gone.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the queue is deleted or is not.
    pub async fn delete(&self, queue: &QueueName, deletion: Deletion) -> Result<(), Error> {
        Ok(delete(&self.pace().await?, queue, deletion).await?)
    }

    /// Deletes the queues that were not used for so long: no command changed them, no shard has jobs, and
    /// they are neither paused nor held nor have a slot ahead. The names of those that went, sorted.
    ///
    /// It takes a command for each queue that is stored. A shard that has one of them open, without jobs,
    /// brings it back with its next one; see [`delete`](Self::delete).
    ///
    /// # Errors
    ///
    /// As [`pace`](Self::pace). One queue that cannot be deleted, because its record is damaged, say, keeps
    /// no other from it; the first such error is told at the end.
    ///
    /// # Cancel safety
    ///
    /// Dropped, some are deleted.
    pub async fn prune(&self, idle_for: Duration) -> Result<Vec<QueueName>, Error> {
        let state = self.pace().await?;
        let idle = Deletion::Idle(Micros::from_duration(idle_for));
        let (mut gone, mut first_error) = (Vec::new(), Ok(()));
        for queue in state.queues().await? {
            match delete(&state, &queue, idle).await {
                Ok(()) => gone.push(queue),
                Err(error) if matches!(error.kind(), StateErrorKind::Conflict | StateErrorKind::NotFound) => {
                }
                Err(error) => first_error = first_error.and(Err(error)),
            }
        }
        first_error?;
        Ok(gone)
    }
}

/// Asks twice if need be: over a connection that died while nobody used it the first attempt fails.
async fn delete(
    state: &Arc<dyn SharedState>,
    queue: &QueueName,
    deletion: Deletion,
) -> Result<(), StateError> {
    let command = Command::Change(Change::Delete(deletion), Memory::default());
    match state.apply(queue, command.clone()).await {
        Err(error) if error.is_retryable() => match state.apply(queue, command).await {
            // The first one may have happened.
            Err(again) if again.kind() == StateErrorKind::NotFound => Ok(()),
            other => other.map(drop),
        },
        other => other.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use interval_queue_conformance::Faulty;
    use interval_queue_contract::{MaxRunning, OnExisting, Rates};
    use interval_queue_memory::MemoryState;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_deletion_whose_reply_was_lost_has_happened() {
        let (name, state) = (QueueName::new("mail").unwrap(), Faulty::new(MemoryState::new()));
        let (rates, max_running) = (Some(Rates::every(Micros::new(1))), MaxRunning::Keep);
        let open = Change::Open { rates, max_running, on_existing: OnExisting::Fail };
        state.apply(&name, Command::Change(open, Memory::default())).await.unwrap();
        let shared: Arc<dyn SharedState> = Arc::new(state.clone());
        state.lose_next_reply();
        delete(&shared, &name, Deletion::Unused).await.unwrap();
        let missing = delete(&shared, &name, Deletion::Unused).await.unwrap_err();
        assert_eq!(missing.kind(), StateErrorKind::NotFound, "not if there was none");
    }
}
