//! A queue with nothing to do: how soon a job starts that is added to it, and what a quiet process does.

use std::{
    env, fs,
    io::{self, Read},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    thread,
    time::Duration,
};

use clap::Args;
use interval_queue::{
    IntervalQueue, SharedState,
    contract::{
        Change, Command as StateCommand, Label, MaxRunning, Memory, Micros, OnExisting, QueueName, Rates,
        ShardId, Step, Take,
    },
};
use tokio::{sync::oneshot, time::sleep};

use crate::{
    Failure,
    analysis::spread,
    clock,
    contender::{StateKind, Threads},
    crew::{Crew, Word},
    report::Idle,
    state::{self, State},
    trace,
    watched::{Watched, connect},
    worker::{QUEUE, hear_go, runtime, say},
};

/// The states that are measured.
pub(crate) const STATES: [StateKind; 6] = [
    StateKind::Redis,
    StateKind::Tmpfs,
    StateKind::Disk,
    StateKind::Memory,
    StateKind::Sqlite,
    StateKind::Postgres,
];
/// Between two commands: as long as it takes until caches and scripts are cold.
const PAUSE: Duration = Duration::from_millis(50);
const INTERVAL: Micros = Micros::from_millis(1);
/// How long a quiet process is looked at.
const QUIET: Duration = Duration::from_secs(10);

/// What was measured of one state, so far.
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    pub(crate) kind: StateKind,
    /// In microseconds.
    starts: Vec<f64>,
    round_trips: Vec<f64>,
    commands: u64,
    system_calls: Option<u64>,
}

impl Samples {
    pub(crate) fn new(kind: StateKind) -> Self {
        Self { kind, starts: Vec::new(), round_trips: Vec::new(), commands: 0, system_calls: None }
    }

    /// How a user names it.
    pub(crate) fn name(&self) -> String {
        format!("idle {}", self.kind.name())
    }

    /// Adds `count` samples, taken by a process of its own. Afterwards, if asked to, counts what that process
    /// does while it has nothing to do.
    pub(crate) fn take(&mut self, count: u64, look_at_quiet: bool) -> Result<(), Failure> {
        let state = State::start(self.kind, Duration::ZERO)?;
        let notes = state::directory_for_notes()?;
        let out = notes.path().join("samples");
        let mut command = Command::new(env::current_exe()?);
        command.arg("idle").args(["--store", state.url(), "--samples", &count.to_string()]);
        command.arg("--out").arg(&out);
        let mut crew = Crew::start([command])?;
        let patience = PAUSE * u32::try_from(count)? * 10 + Duration::from_secs(60);
        crew.wait_for(Word::Ready, patience)?;
        crew.go(clock::monotonic())?;
        crew.wait_for(Word::Done, patience)?;
        self.read(&out)?;
        if look_at_quiet {
            self.system_calls = trace::system_calls(crew.pid(0), QUIET, notes.path())?;
        }
        crew.finish();
        Ok(())
    }

    fn read(&mut self, path: &Path) -> Result<(), Failure> {
        for line in fs::read_to_string(path)?.lines() {
            let (kind, number) = line.split_once(' ').ok_or("a torn sample")?;
            let number: u64 = number.parse()?;
            match kind {
                "start" => self.starts.push(number as f64 / 1000.0),
                "round-trip" => self.round_trips.push(number as f64 / 1000.0),
                _ => self.commands += number,
            }
        }
        Ok(())
    }

    /// What the report says of it; none: nothing was measured.
    pub(crate) fn found(&self) -> Option<Idle> {
        Some(Idle {
            state: self.kind.name().to_owned(),
            samples: self.starts.len() as u64,
            start: spread(self.starts.iter().copied())?,
            round_trip: spread(self.round_trips.iter().copied())?,
            operations: self.commands as f64 / self.starts.len() as f64,
            system_calls: self.system_calls,
            quiet_seconds: QUIET.as_secs(),
        })
    }
}

/// What the process that takes samples is told.
#[derive(Clone, Debug, Args)]
pub(crate) struct Arguments {
    /// The address of the store.
    #[arg(long)]
    store: String,
    /// How many samples to take.
    #[arg(long)]
    samples: u64,
    /// The file to write them to.
    #[arg(long)]
    out: PathBuf,
}

/// Takes samples, and is quiet then until its standard input ends.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    runtime(Threads::Single)?.block_on(work(arguments))
}

async fn work(arguments: Arguments) -> Result<(), Failure> {
    let state = connect(&arguments.store).await?;
    let watched = Watched::new(state.clone(), None);
    let queue = IntervalQueue::builder(QUEUE).interval(INTERVAL.to_duration()).open(watched.clone()).await?;
    let mut probe = Probe::open(state).await?;
    start_time(&queue).await?;
    probe.round_trip().await?;
    say("ready")?;
    hear_go()?;
    let commands = watched.commands();
    let mut text = String::new();
    for _ in 0..arguments.samples {
        sleep(PAUSE).await;
        text += &format!("start {}\n", start_time(&queue).await?);
        sleep(PAUSE).await;
        text += &format!("round-trip {}\n", probe.round_trip().await?);
    }
    text += &format!("commands {}\n", watched.commands() - commands);
    fs::write(&arguments.out, text)?;

    // A thread of its own waits for the end, so that the runtime waits as it would in an application.
    let (ended, end) = oneshot::channel();
    thread::spawn(move || {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        let _ = ended.send(());
    });
    say("done")?;
    Ok(end.await?)
}

/// From the call that adds a job until it runs, in nanoseconds.
async fn start_time(queue: &IntervalQueue) -> Result<u64, Failure> {
    let called = clock::monotonic();
    let started = queue.add(async { clock::monotonic() }).await?.await?;
    queue.wait_idle().await;
    Ok(started - called)
}

/// Sends by itself what a shard sends for a job on an idle queue, for a queue of another name.
struct Probe {
    state: Arc<dyn SharedState>,
    queue: QueueName,
    shard: ShardId,
    label: Label,
    sequence: u64,
    memory: Memory,
}

impl Probe {
    async fn open(state: Arc<dyn SharedState>) -> Result<Self, Failure> {
        let open = Change::Open {
            rates: Some(Rates::every(INTERVAL)),
            max_running: MaxRunning::Keep,
            on_existing: OnExisting::Replace,
        };
        let queue = QueueName::new("probe")?;
        let changed = state.apply(&queue, StateCommand::Change(open, Memory::default())).await?.changed()?;
        let (shard, label) = (ShardId::new("0123456789abcdef")?, Label::new("probe")?);
        Ok(Self { state, queue, shard, label, sequence: 0, memory: changed.memory })
    }

    /// How long the state takes to answer, in nanoseconds.
    async fn round_trip(&mut self) -> Result<u64, Failure> {
        self.sequence += 1;
        let idle = Step::idle(self.shard.clone(), self.sequence, self.memory, Micros::from_millis(5_000));
        let step = Step {
            label: self.label.clone(),
            lead: Micros::from_millis(4),
            take: Some(Take { request: self.sequence, count: 1, weights: vec![1] }),
            ..idle
        };
        let sent = clock::monotonic();
        let reply = self.state.apply(&self.queue, StateCommand::Step(step)).await;
        let took = clock::monotonic() - sent;
        let stepped = reply?.stepped()?;
        if stepped.grants.len() != 1 {
            return Err(format!("an idle queue granted {} slots", stepped.grants.len()).into());
        }
        self.memory = stepped.memory;
        Ok(took)
    }
}
