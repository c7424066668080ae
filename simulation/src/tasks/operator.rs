//! What operators do.

use interval_queue::MaxRunning;
use interval_queue_tasks::{Error, ErrorKind, Selector, SettingsChange, TaskQueue};

use super::{ids, plan::Operation};

impl Operation {
    /// Does it. That nobody answers is no error of it, nor that there is no queue.
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
            Self::Hold(time) => {
                if let Some(pace) = queue.pace() {
                    // It fails only if the state cannot be reached.
                    let _ = pace.hold(*time).await;
                }
                Ok(())
            }
        };
        match done {
            Err(error)
                if !matches!(error.kind(), ErrorKind::Unanswered | ErrorKind::Missing | ErrorKind::Store) =>
            {
                Err(error)
            }
            _ => Ok(()),
        }
    }
}

async fn change(
    queue: &TaskQueue,
    selector: Selector,
    verb: interval_queue_tasks::Verb,
) -> Result<(), Error> {
    queue.change(&selector, verb, false).await.map(drop)
}

fn named(text: &str) -> Option<interval_queue_tasks::Key> {
    interval_queue_tasks::Key::new(text).ok()
}
