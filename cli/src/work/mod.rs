//! `work`: runs CMD for each stored task. `handler` runs CMD under a guard, `kept_commands` keeps
//! it for many tasks, and `exit_mapping` maps its end to the end of the task.

mod aside;
mod exit_mapping;
mod handler;
mod kept_commands;
mod leases;
mod programs;
mod reply;
mod reply_file;
mod unserved;
mod work_args;

use std::{
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{join_all, try_join_all},
};
use interval_queue_tasks::{Context, Error, Permits, TaskQueue, Worker, WorkerHandle};
use signal_hook::consts::{SIGUSR1, SIGUSR2};
use tokio::{sync::watch, time::timeout};

pub(crate) use self::work_args::WorkArgs;
use self::{handler::Handler, programs::Programs, unserved::Unserved};
use crate::{
    child::{StderrWriter, expect_children, guard::Lease},
    clock::expired,
    exit::{Ending, Failure, chain, report},
    outage::StoreOutages,
    rate::pace as shown,
    shard::label,
    signals::Signals,
    target::bounded,
};
use interval_queue_documents::words::show;

/// Ending a run takes up to five seconds.
const STOP_TIMEOUT: Duration = Duration::from_secs(8);

pub(crate) async fn run(work: WorkArgs) -> Result<Ending, Failure> {
    let programs = Programs::find(&work)?;
    let mut signals = Signals::listen()?;
    expect_children()?;
    work.pace.rates()?;
    let queues = tokio::select! {
        biased;
        signal = signals.next() => return Ok(Ending::Signal(signal.number)),
        queues = open(&work) => queues?,
    };
    let stderr = StderrWriter::start()?;
    let label = work.label.clone().unwrap_or_else(|| label(&programs.name));
    let kinds: Vec<String> = programs.kinds().map(str::to_owned).collect();
    let handler = Arc::new(Handler::new(programs, &work, stderr.handle()));
    let permits = (queues.len() > 1).then(|| Permits::new(work.jobs, work.queue_order.into()));
    let mut workers = Vec::new();
    let outages = Arc::new(Mutex::new(StoreOutages::of(&work.target.store.url)));
    for queue in &queues {
        let (leases, lease) = watch::channel(Lease::NONE);
        let worker = worker(&work, queue, lease, &label, &kinds, &handler, permits.as_ref())?;
        tokio::spawn(leases::follow(worker.handle().connection(), leases, outages.clone()));
        workers.push(worker);
    }
    let handles: Vec<_> = workers.iter().map(Worker::handle).collect();
    handler.watch(handles.clone());
    let mut unserved = Unserved::default();
    let run = async |worker: Worker| {
        let ended = if work.until_empty { worker.run_until_empty().await } else { worker.run().await };
        if ended.is_err() {
            handles.iter().for_each(WorkerHandle::stop);
        }
        ended.map(drop)
    };
    let running = join_all(workers.into_iter().map(&run));
    let mut running = pin!(running.map(|ended| ended.into_iter().collect::<Result<(), Error>>()));
    let mut first: Option<i32> = None;
    let mut broken = None;
    let mut enough = pin!(async {
        tokio::select! {
            () = handler.has_started(work.max_tasks) => {}
            _ = expired(work.run_for) => {}
        }
    });
    let mut is_enough = false;
    let mut checks = Box::pin(unserved.watch::<()>(&queues, &handler));
    let ended = loop {
        tokio::select! {
            biased;
            ended = &mut running => break ended,
            () = handler.take_up() => {}
            () = &mut checks => {}
            () = enough.as_mut(), if !is_enough => {
                is_enough = true;
                handles.iter().for_each(|handle| handle.stop_within(Duration::MAX));
            }
            signal = signals.next() => {
                if [SIGUSR1, SIGUSR2].contains(&signal.number) {
                    // Signals without a meaning for `work`, which would end a process that does not
                    // handle them.
                    continue;
                }
                handler.stops();
                if first.replace(first.unwrap_or(signal.number)).is_some() {
                    handles.iter().for_each(|handle| handle.stop_within(Duration::ZERO));
                    break timeout(STOP_TIMEOUT, &mut running).await.unwrap_or(Ok(()));
                }
                let grace = show(work.grace);
                report(&format!("stopping: commands have {grace} to end; a second signal ends them now"));
                handles.iter().for_each(WorkerHandle::stop);
            }
            failure = handler.broken(), if broken.is_none() => {
                broken = Some(failure);
                handles.iter().for_each(WorkerHandle::stop);
            }
        }
    };
    drop(checks);
    if work.until_empty && first.is_none() && broken.is_none() && ended.is_ok() {
        unserved.check_once(&queues, &handler).await;
        broken = handler.left(&queues).await;
    }
    // Commands that do not end are left to their guards.
    let _ = timeout(STOP_TIMEOUT, handler.close()).await;
    stderr.end().await;
    if let Some(failure) = broken {
        return Err(failure);
    }
    ended.map_err(|error| Failure::from(&error))?;
    Ok(first.map_or(Ending::Code(0), Ending::Signal))
}

async fn open(work: &WorkArgs) -> Result<Vec<TaskQueue>, Failure> {
    let names = work.queues()?;
    let store = &work.target.store.store().await?;
    let opened = names.into_iter().map(async |name| {
        let mut builder = TaskQueue::builder(name.as_str());
        if let Some(pace) = work.pace.pace() {
            builder = builder.rate_limit(pace);
        }
        let opened = builder.open(store);
        let queue = bounded(async { opened.await.map_err(|error| Failure::from(&error)) }).await?;
        let pace = bounded(async { queue.rate_limit().await.map_err(|error| Failure::from(&error)) }).await?;
        if let Some((pace, requested)) = pace.and_then(|pace| Some((pace.clone(), pace.overruled_settings()?))) {
            let (name, kept, requested) = (pace.name().as_str(), shown(&pace.rates()), shown(&requested.rates));
            report(&format!(
                "queue {name:?} keeps its rate, {kept}, not {requested}: `interval-queue set` changes it for all"
            ));
        }
        Ok(queue)
    });
    try_join_all(opened).await
}

fn worker(
    work: &WorkArgs,
    queue: &TaskQueue,
    lease: watch::Receiver<Lease>,
    label: &str,
    kinds: &[String],
    handler: &Arc<Handler>,
    permits: Option<&Permits>,
) -> Result<Worker, Failure> {
    let handler = handler.clone();
    let handle = move |context: Context| {
        let (handler, lease) = (handler.clone(), lease.clone());
        async move { handler.handle(context, lease).await }
    };
    let name = queue.name().as_str().to_owned();
    let mut worker = Worker::builder(queue)
        .jobs(work.max_tasks.map_or(work.jobs, |most| work.jobs.min(u32::try_from(most).unwrap_or(u32::MAX))))
        // A command takes far longer than a round trip to the store, and other workers may be idle.
        .lease(work.lease)
        .grace(work.grace)
        .label(label)
        .on_error(move |failure| report(&format!("queue {name:?}: {}", chain(failure))))
        .handler_for(kinds, handle);
    if !work.lines {
        // A process per task runs long enough to lease the next task after it.
        worker = worker.prefetch(0);
    }
    if let Some(permits) = permits {
        worker = worker.permits(permits);
    }
    if let Some(capacity) = work.capacity {
        worker = worker.capacity(capacity);
    }
    if let Some(load) = work.load() {
        worker = worker.under_load(load);
    }
    worker.build().map_err(|error| Failure::from(&error))
}
