//! Lists and deletes the queues of a store.

use std::{sync::Arc, time::Duration};

use interval_queue_contract::{
    Change, Command, Deletion, Memory, Micros, QueueName, SharedState, StateError, StateErrorKind,
};

use crate::{Store, error::Error};

impl Store {
    /// The names of the store's queues, sorted.
    ///
    /// # Errors
    ///
    /// As [`rates`](Self::rates).
    pub async fn queues(&self) -> Result<Vec<QueueName>, Error> {
        Ok(self.rates().await?.queues().await?)
    }

    /// Deletes a queue and all that is stored of it. A queue opened later under its name is new.
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
    /// A shard that has the queue open is not notified. Its next job restores the queue as after a
    /// lost record: with its tickets and settings, after one interval and the longest lead. After a
    /// deletion [by force](Deletion::Forced), waiting jobs restore it, too. A process that opens
    /// the name earlier starts jobs at once, since only the old shards know the granted slots.
    ///
    /// # Errors
    ///
    /// [`State`](crate::ErrorKind::State), with a [`state`](Error::state) of kind
    /// [`NotFound`](StateErrorKind::NotFound) if the queue does not exist, or
    /// [`Conflict`](StateErrorKind::Conflict) if it is used, naming the shards with jobs. Otherwise
    /// as [`rates`](Self::rates). After [`TimedOut`](StateErrorKind::TimedOut) the queue may be
    /// deleted.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the queue may be deleted.
    pub async fn delete(&self, queue: &QueueName, deletion: Deletion) -> Result<(), Error> {
        Ok(delete(&self.rates().await?, queue, deletion).await?)
    }

    /// Deletes the queues unused for `idle_for`: no command changed them, no shard has jobs, and
    /// they are neither paused nor held and have no slot ahead. Returns their names, sorted.
    ///
    /// Sends one command per stored queue. A shard that has a deleted queue open restores it with
    /// its next job; see [`delete`](Self::delete).
    ///
    /// # Errors
    ///
    /// As [`rates`](Self::rates). A queue that cannot be deleted, such as one with a damaged record,
    /// does not stop the others; the first such error is returned at the end.
    ///
    /// # Cancel safety
    ///
    /// If dropped, some queues may be deleted.
    pub async fn prune(&self, idle_for: Duration) -> Result<Vec<QueueName>, Error> {
        let state = self.rates().await?;
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

/// Retries once: the connection may have died while idle.
async fn delete(
    state: &Arc<dyn SharedState>,
    queue: &QueueName,
    deletion: Deletion,
) -> Result<(), StateError> {
    let command = Command::Change(Change::Delete(deletion), Memory::default());
    match state.apply(queue, command.clone()).await {
        Err(error) if error.is_retryable() => match state.apply(queue, command).await {
            // The first attempt may have deleted the queue.
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
