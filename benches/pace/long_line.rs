//! Many jobs that wait in one shard: how much memory they take, and how fast they come and go.

use std::{
    env, fs,
    io::{self, Read as _},
    path::PathBuf,
    process::Command,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use futures::future::join_all;
use interval_queue::{IntervalQueue, JobHandle};
use serde::{Deserialize, Serialize};
use tokio::task::unconstrained;

use crate::{
    Failure, clock,
    contender::{StateKind, Threads},
    crew::{Crew, Word},
    report::LongLine,
    state::{self, State},
    watched::connect,
    worker::{Left, QUEUE, hear_go, runtime, say},
};

/// How many jobs wait.
const JOBS: u64 = 1_000_000;
/// How many adds are under way at once.
const TOGETHER: u64 = 10_000;
/// What they wait for when they may start.
const INTERVAL: Duration = Duration::from_micros(1);
/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// So many jobs on one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) kind: StateKind,
    jobs: u64,
}

/// All there are; `quick`: with a tenth of the jobs.
pub(crate) fn cases(quick: bool) -> Vec<Case> {
    let jobs = if quick { JOBS / 10 } else { JOBS };
    [StateKind::Memory, StateKind::Redis].map(|kind| Case { kind, jobs }).into()
}

/// Measures each of the cases that can be measured; says what is wrong with the others.
pub(crate) fn long_lines<'a>(cases: impl IntoIterator<Item = &'a Case>) -> Vec<LongLine> {
    let measured = cases.into_iter().filter_map(|case| {
        case.run().inspect_err(|failure| eprintln!("    {}: {failure}", case.name())).ok()
    });
    measured.collect()
}

impl Case {
    /// How a user names it.
    pub(crate) fn name(&self) -> String {
        format!("line {} {} jobs", self.kind.name(), self.jobs)
    }

    /// About how long it runs.
    pub(crate) fn takes(&self) -> Duration {
        Duration::from_micros(10 * self.jobs)
    }

    fn run(&self) -> Result<LongLine, Failure> {
        let state = State::start(self.kind, Duration::ZERO)?;
        let notes = state::directory_for_notes()?;
        let out = notes.path().join("line");
        let mut command = Command::new(env::current_exe()?);
        command.arg("line").args(["--store", state.url(), "--jobs", &self.jobs.to_string()]);
        command.arg("--out").arg(&out);
        let mut crew = Crew::start([command])?;
        crew.wait_for(Word::Ready, PATIENCE)?;
        crew.go(clock::monotonic())?;
        crew.wait_for(Word::Done, PATIENCE)?;
        crew.finish();
        let found: Found = serde_json::from_slice(&fs::read(out)?)?;
        let per_job = |bytes: u64| bytes as f64 / self.jobs as f64;
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        Ok(LongLine {
            state: self.kind.name().to_owned(),
            jobs: self.jobs,
            bytes_per_job: per_job(found.bytes),
            add_seconds: seconds(found.add),
            cancel_seconds: seconds(found.cancel),
            starts_per_second: Some(self.jobs as f64 / seconds(found.start)),
        })
    }
}

/// What the process that holds the jobs is told.
#[derive(Clone, Debug, Args)]
pub(crate) struct Arguments {
    /// The address of the store.
    #[arg(long)]
    store: String,
    /// How many jobs to hold.
    #[arg(long)]
    jobs: u64,
    /// The file to write to what was found.
    #[arg(long)]
    out: PathBuf,
}

/// What it found: bytes, and times in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Found {
    bytes: u64,
    add: u64,
    cancel: u64,
    start: u64,
}

/// Lets jobs wait, cancels them, and lets as many start.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    runtime(Threads::Single)?.block_on(work(arguments))
}

async fn work(arguments: Arguments) -> Result<(), Failure> {
    let state = connect(&arguments.store).await?;
    let queue = IntervalQueue::builder(QUEUE).interval(INTERVAL).open(state).await?;
    queue.pause().await?;
    say("ready")?;
    hear_go()?;

    let left = Arc::new(Left::new(arguments.jobs));
    let before = resident()?;
    let begins = clock::monotonic();
    let handles = add_all(&queue, arguments.jobs, &left).await?;
    let add = clock::monotonic() - begins;
    let bytes = resident()?.saturating_sub(before);

    let begins = clock::monotonic();
    let cancelled = handles.iter().filter(|handle| handle.cancel()).count() as u64;
    queue.wait_idle().await;
    let cancel = clock::monotonic() - begins;
    if cancelled != arguments.jobs {
        return Err(format!("{cancelled} of {} jobs waited", arguments.jobs).into());
    }
    drop(handles);

    drop(add_all(&queue, arguments.jobs, &left).await?);
    let begins = clock::monotonic();
    queue.resume().await?;
    left.none().await;
    let start = clock::monotonic() - begins;

    fs::write(&arguments.out, serde_json::to_vec(&Found { bytes, add, cancel, start })?)?;
    say("done")?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

async fn add_all(queue: &IntervalQueue, jobs: u64, left: &Arc<Left>) -> Result<Vec<JobHandle<()>>, Failure> {
    let mut handles = Vec::with_capacity(usize::try_from(jobs)?);
    while (handles.len() as u64) < jobs {
        let together = TOGETHER.min(jobs - handles.len() as u64);
        let add = |_| {
            let left = left.clone();
            queue.add(async move { left.one_less() })
        };
        // Unconstrained, since tokio lets only some of so many futures of one task be ready at a time, and
        // all are asked.
        for added in unconstrained(join_all((0..together).map(add))).await {
            handles.push(added?);
        }
    }
    Ok(handles)
}

/// How much memory this process has, in bytes.
fn resident() -> Result<u64, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no memory is told of")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim_end().parse()?;
    Ok(kib * 1024)
}
