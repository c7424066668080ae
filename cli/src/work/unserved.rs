//! Kinds with waiting tasks that no worker serves. Each is printed once.

use std::{collections::BTreeSet, time::Duration};

use interval_queue::QueueName;
use interval_queue_tasks::{Kind, TaskQueue};
use tokio::time::sleep;

use super::handler::Handler;
use crate::exit::report;

/// Workers of other kinds may be starting together with this one.
const FIRST_CHECK_DELAY: Duration = Duration::from_secs(2);
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Unserved {
    printed: BTreeSet<(QueueName, Kind)>,
    is_checked: bool,
}

impl Unserved {
    pub(super) async fn watch<T>(&mut self, queues: &[TaskQueue], handler: &Handler) -> T {
        sleep(FIRST_CHECK_DELAY).await;
        loop {
            self.check(queues, handler).await;
            sleep(CHECK_INTERVAL).await;
        }
    }

    /// When the worker ends, if it has not checked before.
    pub(super) async fn check_once(&mut self, queues: &[TaskQueue], handler: &Handler) {
        if !self.is_checked {
            self.check(queues, handler).await;
        }
    }

    async fn check(&mut self, queues: &[TaskQueue], handler: &Handler) {
        for queue in queues {
            let Ok(overview) = queue.overview().await else { return };
            let unserved = overview.unserved.into_iter().filter(|kind| !handler.serves(kind));
            for kind in unserved {
                let (name, shown) = (queue.name(), kind.as_str().to_owned());
                if self.printed.insert((name.clone(), kind)) {
                    let name = name.as_str();
                    report(&format!(
                        "queue {name:?}: tasks of kind {shown:?} wait, and no worker serves them: start one with --kind"
                    ));
                }
            }
        }
        self.is_checked = true;
    }
}
