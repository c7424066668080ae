//! The queue that the command line names, looked at and changed without being a shard of it.

use std::{future::Future, sync::Arc, time::Duration};

use interval_queue::{
    SharedState, Snapshot, Store, connect,
    contract::{Change, Changed, Command, Memory, QueueName, Reply},
    task_contract::TaskStore,
};
use tokio::time::timeout;

use crate::{
    args::{State, Target},
    exit::{Failure, NOINPUT, UNAVAILABLE},
};

/// Longer than any backend takes to give up by itself.
const PATIENCE: Duration = Duration::from_secs(15);

impl State {
    /// Opens the state.
    pub(crate) async fn open(&self) -> Result<Arc<dyn SharedState>, Failure> {
        bounded(async { Ok(connect(&self.url).await?.pace().await?) }).await
    }

    /// Opens the store of tasks.
    pub(crate) async fn tasks(&self) -> Result<Arc<dyn TaskStore>, Failure> {
        bounded(async { Ok(connect(&self.url).await?.tasks().await?) }).await
    }

    /// Opens the store that has it.
    pub(crate) async fn store(&self) -> Result<Store, Failure> {
        bounded(async { Ok(connect(&self.url).await?) }).await
    }
}

impl Target {
    /// Opens the state and looks at the queue; none if it is not there.
    pub(crate) async fn look(&self) -> Result<Option<Snapshot>, Failure> {
        let state = self.state.open().await?;
        look(&*state, &self.queue).await
    }

    /// The error that there is no such queue.
    pub(crate) fn missing(&self) -> Failure {
        let queue = self.queue.as_str();
        let way_out = "see `interval-queue list`, or make it with `interval-queue run --every`";
        Failure::new(NOINPUT, format!("there is no queue {queue:?} here: {way_out}"))
    }

    /// Changes something for all shards.
    pub(crate) async fn change(&self, change: Change) -> Result<Changed, Failure> {
        let state = self.state.open().await?;
        match self::change(&*state, &self.queue, change).await {
            Err(failure) if failure.code == NOINPUT => Err(self.missing()),
            other => other,
        }
    }
}

/// Looks at a queue; none if it is not there.
pub(crate) async fn look(state: &dyn SharedState, queue: &QueueName) -> Result<Option<Snapshot>, Failure> {
    ask(state, queue, Command::Read).await?.read().map_err(Failure::from)
}

/// Changes something for all shards of a queue.
pub(crate) async fn change(
    state: &dyn SharedState,
    queue: &QueueName,
    change: Change,
) -> Result<Changed, Failure> {
    let reply = ask(state, queue, Command::Change(change, Memory::default())).await?;
    reply.changed().map_err(Failure::from)
}

/// Asks twice if need be: over a connection that died while nobody used it the first attempt fails. What is
/// done twice here is done once.
async fn ask(state: &dyn SharedState, queue: &QueueName, command: Command) -> Result<Reply, Failure> {
    bounded(async {
        match state.apply(queue, command.clone()).await {
            Err(error) if error.is_retryable() => Ok(state.apply(queue, command).await?),
            reply => Ok(reply?),
        }
    })
    .await
}

/// The result, or a failure after [`PATIENCE`]: a mount that hangs must not hang the program.
pub(crate) async fn bounded<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    timeout(PATIENCE, work).await.unwrap_or_else(|_| {
        let message = format!("the state did not answer within {PATIENCE:?}");
        Err(Failure { passes: true, ..Failure::new(UNAVAILABLE, message) })
    })
}
