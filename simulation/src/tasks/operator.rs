//! What operators do.

use interval_queue::MaxRunning;
use interval_queue_tasks::{Error, ErrorKind, Selector, SettingsChange, TaskQueue, Verb};

use super::{ids, task_plan::Operation};

impl Operation {
    /// An unreachable store is no error, nor a missing queue, nor a task that is not retried
    /// because its unique name is taken.
    pub(super) async fn act(&self, queue: &TaskQueue) -> Result<(), Error> {
        let done = match self {
            Self::Task(verb, number) => change(queue, Selector::ids([ids::id(*number)]), verb.clone()).await,
            Self::Key(verb, key) => {
                change(queue, Selector { key: named(key), ..Selector::default() }, verb.clone()).await
            }
            Self::Unique(verb, name) => {
                change(queue, Selector { unique: named(name), ..Selector::default() }, verb.clone()).await
            }
            Self::State(verb, state) => change(queue, Selector::states([*state]), verb.clone()).await,
            Self::Pause => queue.pause().await,
            Self::Resume => queue.resume().await,
            Self::PauseKind(kind, paused) => queue.pause_kind(*kind, *paused).await,
            Self::KeyLimit(key, limit) => queue.set_key_limit(*key, *limit).await,
            Self::Limits { max_running, key_limit } => {
                let max_running = max_running.map_or(MaxRunning::Unlimited, MaxRunning::AtMost);
                let change =
                    SettingsChange { max_running, key_limit: Some(*key_limit), ..SettingsChange::default() };
                queue.set(change).await.map(drop)
            }
            Self::DeclareLost(number) => declare_lost(queue, *number).await,
            Self::Hold(time) => {
                // Fails only if the store cannot be reached.
                if let Ok(Some(pace)) = queue.rate_limit().await {
                    let _ = pace.hold(*time).await;
                }
                Ok(())
            }
            Self::Rate(rate) => {
                let done = match rate {
                    Some(interval) => queue.set_rate_limit(*interval).await,
                    None => queue.remove_rate_limit().await,
                };
                match done {
                    Err(error) if error.kind() == ErrorKind::RateLimit => Ok(()),
                    done => done,
                }
            }
        };
        match done {
            Err(error) => match error.kind() {
                ErrorKind::Unanswered | ErrorKind::Missing | ErrorKind::Store => Ok(()),
                ErrorKind::Conflict if matches!(self, Self::Task(Verb::Retry, _)) => Ok(()),
                _ => Err(error),
            },
            Ok(()) => Ok(()),
        }
    }
}

async fn change(queue: &TaskQueue, selector: Selector, verb: Verb) -> Result<(), Error> {
    queue.change(&selector, verb, false).await.map(drop)
}

/// Whether it lives or not.
async fn declare_lost(queue: &TaskQueue, number: usize) -> Result<(), Error> {
    let workers = queue.workers().await?;
    let Some(worker) = workers.get(number % workers.len().max(1)) else { return Ok(()) };
    queue.declare_lost(worker.presence.worker).await
}

fn named(text: &str) -> Option<interval_queue_tasks::Key> {
    interval_queue_tasks::Key::new(text).ok()
}
