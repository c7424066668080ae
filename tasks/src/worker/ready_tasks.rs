//! Runs of the tasks that are ready now, for tests of applications.

use std::sync::{Arc, OnceLock};

use interval_queue_task_contract::TaskId;

use super::{
    WorkerBuilder,
    core::MAX_GRACE,
    driver::{self, Until},
};
use crate::{error::Error, totals::Totals};

impl<S: Send + Sync + 'static> WorkerBuilder<S> {
    /// Runs tasks of the worker's kinds.
    pub(crate) async fn run_ready(self) -> Result<Totals, Error> {
        driver::drive(self.build()?.core, Until::NoneReady).await
    }

    /// `None`: no task of the worker's kinds is ready.
    pub(crate) async fn run_one(mut self) -> Result<Option<TaskId>, Error> {
        let begun = Arc::new(OnceLock::new());
        for handler in self.handlers.values_mut() {
            let (inner, begun) = (handler.clone(), begun.clone());
            *handler = Arc::new(move |run| {
                let _ = begun.set(run.id().id);
                // The run itself may go on for a day.
                run.core.stop_within(MAX_GRACE);
                inner(run)
            });
        }
        self.jobs(1).prefetch(0).run_ready().await?;
        Ok(begun.get().copied())
    }
}
