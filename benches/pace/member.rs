//! A process with many shards of one queue, in each of which jobs always wait.

use std::{
    ffi::OsString,
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use clap::Args;
use interval_queue::IntervalQueue;
use tokio::{sync::Notify, task::spawn_blocking, time};

use crate::{
    Failure, clock,
    contender::Threads,
    watched::{Watched, connect},
    worker::{QUEUE, hear_go, runtime, say},
};

/// How many jobs wait in each shard: while one of them starts and is followed by another, one waits.
const JOBS: u64 = 2;
/// Over how long its shards are opened: as they come over time. Half a lease, since then a shard next asks.
const OPENING: Duration = Duration::from_millis(2_500);
/// Until what failed is tried again.
const AGAIN: Duration = Duration::from_millis(100);

/// What such a process is told.
#[derive(Clone, Debug, Args)]
pub(crate) struct Arguments {
    /// The address of the store.
    #[arg(long)]
    pub(crate) store: String,
    /// Microseconds between two starts of all shards.
    #[arg(long)]
    pub(crate) interval_us: u64,
    /// How many shards are in this process.
    #[arg(long)]
    pub(crate) shards: u64,
    /// How long starts are counted.
    #[arg(long)]
    pub(crate) counted_ms: u64,
    /// How long it may take until all shards wait. Then those that do are all there are.
    #[arg(long)]
    pub(crate) patience_ms: u64,
    /// The file to write to what was counted.
    #[arg(long)]
    pub(crate) out: PathBuf,
}

impl Arguments {
    /// These orders as arguments.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let numbers = [
            ("--interval-us", self.interval_us),
            ("--shards", self.shards),
            ("--counted-ms", self.counted_ms),
            ("--patience-ms", self.patience_ms),
        ];
        let numbers = numbers.into_iter().flat_map(|(name, value)| [name.into(), value.to_string().into()]);
        let places = ["--store".into(), self.store.clone().into(), "--out".into(), self.out.clone().into()];
        numbers.chain(places).collect()
    }
}

/// What one process found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// When jobs started while it was counted, in nanoseconds on the monotonic clock.
    pub(crate) starts: Vec<u64>,
    /// How many commands the state got meanwhile.
    pub(crate) commands: u64,
    /// What the process used of the processor meanwhile, in nanoseconds.
    pub(crate) cpu: u64,
    /// In how many shards jobs waited.
    pub(crate) waiting: u64,
}

impl Notes {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let mut notes = Self::default();
        for line in fs::read_to_string(path)?.lines() {
            let (kind, number) = line.split_once(' ').ok_or("a torn note")?;
            let number = number.parse()?;
            match kind {
                "start" => notes.starts.push(number),
                "commands" => notes.commands = number,
                "cpu" => notes.cpu = number,
                "waiting" => notes.waiting = number,
                _ => return Err(format!("a process with many shards wrote {line:?}").into()),
            }
        }
        Ok(notes)
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let mut text: String = self.starts.iter().map(|start| format!("start {start}\n")).collect();
        text += &format!("commands {}\ncpu {}\nwaiting {}\n", self.commands, self.cpu, self.waiting);
        fs::write(path, text)
    }
}

/// Keeps jobs waiting in all its shards until its standard input ends.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    runtime(Threads::Single)?.block_on(work(arguments))
}

async fn work(arguments: Arguments) -> Result<(), Failure> {
    let state = Watched::new(connect(&arguments.store).await?, None);
    let count = Arc::new(Count::default());
    let opening = clock::monotonic();
    for number in 0..arguments.shards {
        let opens = opening + number * OPENING.as_nanos() as u64 / arguments.shards;
        let interval = Duration::from_micros(arguments.interval_us);
        tokio::spawn(keep_waiting(state.clone(), opens, interval, count.clone()));
    }
    let patience = Duration::from_millis(arguments.patience_ms);
    // Whether all of them wait is told by the count.
    let _ = time::timeout(patience, count.until_waiting(arguments.shards)).await;
    say("ready")?;
    let begins = spawn_blocking(hear_go).await??;

    time::sleep(clock::remaining(begins)).await;
    let (cpu, commands) = (clock::cpu(), state.commands());
    count.take_starts();
    time::sleep(clock::remaining(begins + arguments.counted_ms * 1_000_000)).await;
    let notes = Notes {
        starts: count.take_starts(),
        commands: state.commands() - commands,
        cpu: clock::cpu() - cpu,
        waiting: count.waiting.load(Ordering::Relaxed),
    };
    notes.write(&arguments.out)?;
    say("done")?;
    spawn_blocking(|| io::stdin().read_to_end(&mut Vec::new())).await??;
    Ok(())
}

/// A shard in which jobs always wait, once it is time to open it. What fails is tried again: a state that is
/// too busy answers late.
async fn keep_waiting(state: Watched, opens: u64, interval: Duration, count: Arc<Count>) {
    time::sleep(clock::remaining(opens)).await;
    let queue = loop {
        match IntervalQueue::builder(QUEUE).interval(interval).open(state.clone()).await {
            Ok(queue) => break queue,
            Err(_) => time::sleep(AGAIN).await,
        }
    };
    for number in 0..JOBS {
        let (queue, count) = (queue.clone(), count.clone());
        tokio::spawn(async move {
            let mut is_first = number == 0;
            loop {
                let starts = count.clone();
                match queue.add(async move { starts.start() }).await {
                    Ok(handle) => {
                        if std::mem::take(&mut is_first) {
                            count.one_waits();
                        }
                        // It cannot fail: it is neither cancelled nor can it panic.
                        let _ = handle.await;
                    }
                    Err(_) => time::sleep(AGAIN).await,
                }
            }
        });
    }
}

/// What all shards of this process did.
#[derive(Debug, Default)]
struct Count {
    starts: Mutex<Vec<u64>>,
    waiting: AtomicU64,
    more: Notify,
}

impl Count {
    fn start(&self) {
        let now = clock::monotonic();
        self.starts.lock().unwrap_or_else(PoisonError::into_inner).push(now);
    }

    /// The starts since this was last called.
    fn take_starts(&self) -> Vec<u64> {
        std::mem::take(&mut *self.starts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn one_waits(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.more.notify_one();
    }

    async fn until_waiting(&self, shards: u64) {
        while self.waiting.load(Ordering::Relaxed) < shards {
            self.more.notified().await;
        }
    }
}
