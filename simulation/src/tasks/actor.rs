//! The process of a worker: it opens the queue, and runs one worker after the other.

use std::sync::{Arc, Mutex};

use interval_queue_contract::QueueName;
use interval_queue_tasks::{Builder, Context, Worker, WorkerHandle};

use super::{
    handler::{self, Tally},
    opened::Opened,
    task_execution::RETRY_PAUSE,
    task_plan::{Plan, WorkerPlan},
};
use crate::{process::Process, service::locked};

#[derive(Clone)]
pub(super) struct Service {
    pub(super) process: Process,
    pub(super) queue: QueueName,
    pub(super) plan: Arc<Plan>,
    pub(super) worker: WorkerPlan,
    pub(super) tally: Arc<Mutex<Tally>>,
    pub(super) handle: Arc<Mutex<Option<WorkerHandle>>>,
}

pub(super) async fn work(service: Service, builder: Builder, opened: Opened) {
    let process = &service.process;
    let queue = loop {
        match builder.clone().open_parts(process.tasks(), process.pace()).await {
            Ok(queue) => break queue,
            Err(_) => process.sleep(RETRY_PAUSE).await,
        }
    };
    opened.set(queue.clone());
    loop {
        // A worker that its handlers held would never be dropped.
        let handler_service = Service { handle: Arc::default(), ..service.clone() };
        let handler = move |context: Context| handler::run(handler_service.clone(), context);
        let worker = Worker::builder(&queue)
            .handler_for(&service.worker.kinds, handler)
            .jobs(service.worker.jobs)
            .prefetch(service.worker.prefetch)
            .lease(service.plan.lease)
            .label(process.name())
            .build();
        match worker {
            Ok(worker) => {
                *locked(&service.handle) = Some(worker.handle());
                if let Err(error) = worker.run().await {
                    process.world.note(|| format!("{} ends: {error}", process.name()));
                }
            }
            Err(error) => return process.world.judged(Err(format!("T1: no worker can be made: {error}"))),
        }
        process.sleep(RETRY_PAUSE).await;
    }
}
