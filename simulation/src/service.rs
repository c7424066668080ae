//! A simulated process of a plan: it opens its shard and works off its jobs.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::{AbortHandle, AbortRegistration, Abortable};
use interval_queue::{Builder, IntervalQueue};
use interval_queue_contract::QueueName;
use tokio::sync::{mpsc, watch};

use crate::{check::Promise, process::Process};

const RETRY_PAUSE: Duration = Duration::from_millis(200);

pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) weight: u32,
    pub(crate) runs: Duration,
    pub(crate) cancelled: AbortRegistration,
}

/// Jobs that have not started, with the way to cancel them.
pub(crate) type Waiting = Arc<Mutex<BTreeMap<u64, AbortHandle>>>;

#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) added: u64,
    pub(crate) started: u64,
    pub(crate) first: Option<Duration>,
    pub(crate) last: Duration,
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) process: Process,
    pub(crate) queue: QueueName,
    pub(crate) waiting: Waiting,
    pub(crate) tally: Arc<Mutex<Tally>>,
}

impl Service {
    pub(crate) async fn work(
        self,
        builder: impl Fn() -> Builder,
        opened: watch::Sender<Option<IntervalQueue>>,
        mut jobs: mpsc::UnboundedReceiver<Job>,
    ) {
        let queue = loop {
            let (process_id, world) = (self.process.id, self.process.world.clone());
            let builder = builder().on_error(move |_| world.check(|checks| checks.reported(process_id)));
            match builder.open(self.process.clone()).await {
                Ok(queue) => break queue,
                Err(_) => self.process.sleep(RETRY_PAUSE).await,
            }
        };
        // The receiver may be gone.
        let _ = opened.send(Some(queue.clone()));
        while let Some(job) = jobs.recv().await {
            self.process.run(self.clone().job(queue.clone(), job));
        }
    }

    async fn job(self, queue: IntervalQueue, job: Job) {
        let turn = queue.turn().weight(job.weight).into_future();
        let Ok(turn) = Abortable::new(turn, job.cancelled).await else { return };
        let world = &self.process.world;
        locked(&self.waiting).remove(&job.id);
        let since = world.now() - world.began();
        let turn = match turn {
            Ok(turn) => turn,
            Err(error) => {
                let what = format!("job {} was refused: {error}", job.id);
                world.violate(Promise::NoLostPlace, what);
                return;
            }
        };
        world.started(&self.process, &self.queue, turn.ticket());
        world.waiting(-1);
        {
            let mut tally = locked(&self.tally);
            tally.started += 1;
            tally.first.get_or_insert(since);
            tally.last = since;
        }
        self.process.sleep(job.runs).await;
        drop(turn);
    }
}
