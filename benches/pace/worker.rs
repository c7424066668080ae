//! A worker process of this library. What it is told and what it answers is said in [`crew`](crate::crew).

use std::{
    io::{self, Read, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use clap::Args;
use futures::{StreamExt, stream::FuturesUnordered};
use interval_queue::{IntervalQueue, SpaceBy};
use tokio::{
    runtime::{Builder, Runtime},
    sync::Notify,
    time::{sleep, timeout},
};

use crate::{
    Failure,
    assignment::{Assignment, Offer},
    call::Caller,
    clock,
    contender::Threads,
    notes::{Keep, Notebook, Start},
    watched::{Watched, connect},
};

/// The queue that all workers share.
pub(crate) const QUEUE: &str = "pace";
/// How many jobs are offered in a row before other tasks get their turn.
const IN_A_ROW: u64 = 32;

/// What a worker of this library is told.
#[derive(Clone, Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) assignment: Assignment,
    /// How long this worker counts as alive after it last asked. Default: that of the library.
    #[arg(long)]
    pub(crate) lease_ms: Option<u64>,
    /// The runtime.
    #[arg(long, default_value = "single")]
    pub(crate) threads: Threads,
    /// What to write down only at the end.
    #[arg(long, default_value = "nothing")]
    pub(crate) keep: Keep,
    /// Space by starts instead of slots.
    #[arg(long)]
    pub(crate) by_starts: bool,
    /// The port of a server that each job calls at its start.
    #[arg(long)]
    pub(crate) limiter: Option<u16>,
}

/// Does what a worker does, until its standard input ends.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    runtime(arguments.threads)?.block_on(work(arguments))
}

pub(crate) fn runtime(threads: Threads) -> io::Result<Runtime> {
    match threads {
        Threads::Single => Builder::new_current_thread(),
        Threads::Multi => Builder::new_multi_thread(),
    }
    .enable_all()
    .build()
}

async fn work(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { assignment, lease_ms, keep, by_starts, limiter, .. } = arguments;
    let notes = Arc::new(Notebook::open(&assignment.out, keep, assignment.jobs)?);
    let state = Watched::new(connect(&assignment.store).await?, Some(notes.clone()));
    let mut builder = IntervalQueue::builder(QUEUE)
        .interval(Duration::from_micros(assignment.interval_us))
        .space_by(if by_starts { SpaceBy::Starts } else { SpaceBy::Slots })
        .label(format!("worker {}", assignment.worker));
    if let Some(lease) = lease_ms {
        builder = builder.lease(Duration::from_millis(lease));
    }
    let queue = builder.open(state.clone()).await?;
    let caller = limiter.map(Caller::connect).transpose()?.map(Arc::new);
    let jobs = Jobs { queue, notes, caller, left: Arc::new(Left::new(assignment.jobs)) };
    if assignment.offer == Offer::Ahead {
        jobs.add_ahead(assignment.jobs).await?;
    }
    say("ready")?;
    // Nothing else is to be done on this thread until then.
    let go = hear_go()?;
    let (cpu, commands) = (clock::cpu(), state.commands());
    let patience = Duration::from_nanos(assignment.patience());
    let worked = async {
        match assignment.offer {
            Offer::Ahead => jobs.queue.resume().await?,
            Offer::Saturated | Offer::Sparse => offer(&assignment, go, |job| jobs.spawn(job)).await,
        }
        jobs.left.none().await;
        jobs.queue.wait_idle().await;
        Ok::<_, Failure>(())
    };
    if let Ok(worked) = timeout(patience, worked).await {
        worked?;
    }
    let used = clock::cpu() - cpu;
    jobs.notes.finish(used, Some(state.commands() - commands));
    say("done")?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Tells the benchmark a word.
pub(crate) fn say(word: &str) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(format!("{word}\n").as_bytes())?;
    out.flush()
}

/// Waits for the order to begin and gives its instant on the monotonic clock.
pub(crate) fn hear_go() -> Result<u64, Failure> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let instant = line.strip_prefix("go ").and_then(|instant| instant.trim_end().parse().ok());
    instant.ok_or_else(|| format!("heard {line:?} instead of go").into())
}

/// Offers each job at its instant, whether or not those before it were accepted.
pub(crate) async fn offer(assignment: &Assignment, go: u64, mut add: impl FnMut(u64)) {
    let mut in_a_row = 0;
    for (job, when) in (0..).zip(assignment.offers()) {
        let remaining = clock::remaining(go + when);
        in_a_row = if remaining.is_zero() { in_a_row + 1 } else { 0 };
        if !remaining.is_zero() {
            sleep(remaining).await;
        } else if in_a_row % IN_A_ROW == 0 {
            tokio::task::yield_now().await;
        }
        add(job);
    }
}

/// The jobs of a worker.
#[derive(Clone, Debug)]
struct Jobs {
    queue: IntervalQueue,
    notes: Arc<Notebook>,
    /// None: jobs call nobody.
    caller: Option<Arc<Caller>>,
    left: Arc<Left>,
}

impl Jobs {
    fn spawn(&self, job: u64) {
        let jobs = self.clone();
        tokio::spawn(async move { jobs.add(job).await });
    }

    /// Adds all jobs to a queue that is paused.
    async fn add_ahead(&self, count: u64) -> Result<(), Failure> {
        self.queue.pause().await?;
        let mut adds: FuturesUnordered<_> = (0..count).map(|job| self.add(job)).collect();
        while adds.next().await.is_some() {}
        Ok(())
    }

    async fn add(&self, job: u64) {
        let accepted = Arc::new(AtomicU64::new(0));
        let (notes, left, known) = (self.notes.clone(), self.left.clone(), accepted.clone());
        let caller = self.caller.clone();
        let called = clock::monotonic();
        let added = self.queue.add(async move {
            let started = clock::monotonic();
            if let Some(Err(error)) = caller.map(|caller| caller.call()) {
                eprintln!("job {job} cannot call: {error}");
            }
            let accepted = Some(known.load(Ordering::Acquire)).filter(|accepted| *accepted > 0);
            notes.start(Start { job, called, accepted, started });
            left.one_less();
        });
        let ticket = async { added.await?.ticket().await };
        match ticket.await {
            Ok(_) => accepted.store(clock::monotonic(), Ordering::Release),
            // It counts as lost.
            Err(error) => eprintln!("job {job}: {error}"),
        }
    }
}

/// How many jobs have not run.
#[derive(Debug)]
pub(crate) struct Left {
    count: AtomicU64,
    none: Notify,
}

impl Left {
    pub(crate) fn new(count: u64) -> Self {
        Self { count: AtomicU64::new(count), none: Notify::new() }
    }

    pub(crate) fn one_less(&self) {
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.none.notify_one();
        }
    }

    pub(crate) async fn none(&self) {
        while self.count.load(Ordering::Acquire) > 0 {
            self.none.notified().await;
        }
    }
}
