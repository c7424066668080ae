//! Watches the queue, so that the worker polls as soon as tasks may be ready or runs must stop.
//! Without notifications it depends on its regular polls.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use interval_queue::{StateError, StateErrorKind};
use interval_queue_worker::{COMMAND_TIMEOUT, retries};

use super::core::Core;
use crate::host;

const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);

pub(super) async fn keep_watching(core: Arc<Core>) {
    let shared = &core.queue.shared;
    let mut delays = None;
    let mut is_notified = false;
    loop {
        let begin = shared.store.changes(&shared.name);
        let begun = host::timeout(&**core.host(), COMMAND_TIMEOUT, begin).await;
        let timed_out = || Err(StateError::new(StateErrorKind::TimedOut, "the store did not answer in time"));
        let error = match begun.unwrap_or_else(timed_out) {
            Err(error) if error.kind() == StateErrorKind::Unsupported => return,
            Err(error) => error,
            Ok(mut changes) => {
                // Changes before the watch began are not notified.
                notify(&core);
                while changes.next().await.is_some() {
                    (delays, is_notified) = (None, false);
                    notify(&core);
                }
                StateError::new(StateErrorKind::Unreachable, "the watching ended")
            }
        };
        if !is_notified {
            shared.telemetry.watch_failed(&error);
            is_notified = true;
        }
        let delay = delays.get_or_insert_with(|| retries(MAX_RETRY_DELAY, core.host().random())).next();
        host::sleep(&**core.host(), delay.unwrap_or(MAX_RETRY_DELAY)).await;
    }
}

fn notify(core: &Core) {
    core.machine().notify();
    core.wake.notify_one();
}
