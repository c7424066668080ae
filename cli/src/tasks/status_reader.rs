//! Reads the status of a queue of tasks again and again, over one connection.

use interval_queue::{Operator, Operators, Store};
use interval_queue_documents::Queue;
use interval_queue_tasks::TaskQueues;

use super::opened::READ_TIMEOUT;
use crate::{
    args::Target,
    exit::Failure,
    target::{bounded, snapshot},
};

pub(super) struct StatusReader<'a> {
    target: &'a Target,
    store: Option<Store>,
    opened: Option<(TaskQueues, Operator)>,
}

impl<'a> StatusReader<'a> {
    pub(super) fn of(target: &'a Target) -> Self {
        Self { target, store: None, opened: None }
    }

    /// The document has no measured rate.
    pub(super) async fn read(&mut self) -> Result<Queue, Failure> {
        let name = &self.target.queue;
        let (queues, operator) = self.opened().await?;
        let (queue, overview) = match bounded(async { Ok(queues.find(name).await?) }).await? {
            Some(found) => found,
            None => return Err(self.target.no_tasks()),
        };
        let (workers, longest) = bounded(async {
            let workers = queue.workers().await?;
            let longest = queue.runs(&workers).await?.into_iter().next();
            Ok((workers, longest))
        })
        .await?;
        let rate = snapshot(operator).await?;
        Ok(Queue::of(name.as_str(), &overview, rate.as_ref(), &workers, longest.as_ref(), None))
    }

    /// Opens the store once. A failed step is repeated by the next call.
    async fn opened(&mut self) -> Result<&(TaskQueues, Operator), Failure> {
        if self.opened.is_none() {
            let store = match &self.store {
                Some(store) => store,
                None => self.store.insert(self.target.store.store().await?),
            };
            let opened = bounded(async {
                let queues = TaskQueues::open(store).await?.timeout(READ_TIMEOUT);
                Ok((queues, Operators::open(store.clone()).await?.of(&self.target.queue)))
            });
            self.opened = Some(opened.await?);
        }
        self.opened.as_ref().ok_or_else(|| self.target.no_tasks())
    }
}
