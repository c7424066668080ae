//! `work`: CMD for each stored task.
//!
//! `lease` sees in the answers of the store how long this worker has its tasks. `handler` makes a `run` of
//! CMD of a task and a `verdict` of how it `ended`; a run is watched by a guard, see `crate::guard`. What CMD
//! prints is kept by `ends` and its stderr passed on by the `voice`.

mod args;
mod ended;
mod ends;
mod handler;
mod lease;
mod run;
mod verdict;
mod voice;

use std::{pin::pin, sync::Arc, time::Duration};

use interval_queue::task_contract::Kind;
use interval_queue_tasks::{Context, TaskQueue, Worker};
use signal_hook::consts::{SIGUSR1, SIGUSR2};
use tokio::{sync::watch, time::timeout};

pub(crate) use self::args::WorkArgs;
use self::{
    handler::Handler,
    lease::{Lease, Watched},
    voice::Voice,
};
use crate::{
    child::expect_children,
    duration::show,
    exit::{Ending, Failure, say},
    program::Program,
    rate::pace as shown,
    shard::label,
    signals::Signals,
    target::bounded,
};

/// How long a worker that was told to stop at once may take for it: a run that is ended has five seconds.
const AT_ONCE: Duration = Duration::from_secs(8);

pub(crate) async fn work(work: WorkArgs) -> Result<Ending, Failure> {
    let program = Program::find(&work.command)?;
    let mut signals = Signals::listen().map_err(|error| Failure::os("cannot listen to signals", &error))?;
    expect_children()?;
    work.pace.rates()?;
    let (leases, lease) = watch::channel(Lease::new(Duration::ZERO));
    let queue = tokio::select! {
        biased;
        signal = signals.next() => return Ok(Ending::Signal(signal.number)),
        queue = open(&work, leases) => queue?,
    };
    let voice = Voice::start()?;
    let handler = Arc::new(Handler::new(&work, lease, voice.speaker()));
    let worker = worker(&work, &program, &queue, &handler)?;
    let stop = worker.handle();
    let running =
        async { if work.until_empty { worker.run_until_empty().await } else { worker.run().await } };
    let mut running = pin!(running);
    let mut first: Option<i32> = None;
    let mut broken = None;
    let ended = loop {
        tokio::select! {
            biased;
            ended = &mut running => break ended.map(drop),
            signal = signals.next() => {
                if [SIGUSR1, SIGUSR2].contains(&signal.number) {
                    // They end nothing that listens to signals.
                    continue;
                }
                handler.stops();
                if first.replace(first.unwrap_or(signal.number)).is_some() {
                    stop.stop_within(Duration::ZERO);
                    break timeout(AT_ONCE, &mut running).await.map_or(Ok(()), |ended| ended.map(drop));
                }
                say(&format!("stopping: what runs may go on for {}; a second signal ends it now", show(work.grace)));
                stop.stop();
            }
            failure = handler.broken(), if broken.is_none() => {
                broken = Some(failure);
                stop.stop();
            }
        }
    };
    drop(handler);
    voice.end().await;
    if let Some(failure) = broken {
        return Err(failure);
    }
    ended.map_err(|error| Failure::from(&error))?;
    Ok(first.map_or(Ending::Code(0), Ending::Signal))
}

/// Opens the queue, whose answers tell of leases.
async fn open(work: &WorkArgs, leases: watch::Sender<Lease>) -> Result<TaskQueue, Failure> {
    let store = work.target.state.store().await?;
    let (tasks, state) = bounded(async { Ok((store.tasks().await?, store.pace().await?)) }).await?;
    let mut builder = TaskQueue::builder(work.target.queue.as_str());
    if let Some(pace) = work.pace.pace() {
        builder = builder.pace(pace);
    }
    let tasks = Arc::new(Watched::new(tasks, leases));
    let opened =
        bounded(async { builder.open_parts(tasks, state).await.map_err(|error| Failure::from(&error)) });
    let queue = opened.await?;
    if let Some((pace, asked)) = queue.pace().and_then(|pace| Some((pace, pace.overruled_settings()?))) {
        let (name, kept, asked) = (pace.name().as_str(), shown(&pace.rates()), shown(&asked.rates));
        say(&format!(
            "queue {name:?} keeps its pace, {kept}, not {asked}: `interval-queue set` changes it for all"
        ));
    }
    Ok(queue)
}

fn worker(
    work: &WorkArgs,
    program: &Program,
    queue: &TaskQueue,
    handler: &Arc<Handler>,
) -> Result<Worker, Failure> {
    let label = work.label.clone().unwrap_or_else(|| label(&program.base_name()));
    let kinds = work.kinds();
    let handler = handler.clone();
    let handle = move |context: Context| {
        let handler = handler.clone();
        async move { handler.handle(context).await }
    };
    let mut worker = Worker::builder(queue)
        .jobs(work.jobs)
        // A command takes far longer than a round trip to the store, and others may be idle.
        .prefetch(0)
        .lease(work.lease)
        .grace(work.grace)
        .label(label)
        .handler_for(kinds.iter().map(Kind::as_str), handle);
    if let Some(capacity) = work.capacity {
        worker = worker.capacity(capacity);
    }
    if let Some(load) = work.load() {
        worker = worker.under_load(load);
    }
    worker.build().map_err(|error| Failure::from(&error))
}
