//! A queue that a process has opened. Waiters go on in the order in which they came.

use std::sync::{Arc, Mutex};

use interval_queue_tasks::TaskQueue;
use tokio::sync::Notify;

use crate::service::locked;

#[derive(Clone, Default)]
pub(super) struct Opened {
    shared: Arc<(Mutex<Option<TaskQueue>>, Notify)>,
}

impl Opened {
    pub(super) fn set(&self, queue: TaskQueue) {
        let (opened, notified) = &*self.shared;
        *locked(opened) = Some(queue);
        notified.notify_waiters();
    }

    pub(super) async fn queue(&self) -> TaskQueue {
        let (opened, notified) = &*self.shared;
        loop {
            let notified = notified.notified();
            let queue = locked(opened).clone();
            if let Some(queue) = queue {
                return queue;
            }
            notified.await;
        }
    }
}
