//! Processes that work together, of this library and of others, and what they have done.
//!
//! A process prints `ready` and begins at a line on its standard input. From time to time it prints a report: the number
//! of finished tasks, the instants of the first and the last one by the monotonic clock in nanoseconds, and the number of
//! commands. When its standard input ends it prints a last report and ends. A process that runs tasks with a due instant
//! also prints `late` and how late each has started, in microseconds.

use std::{
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future::join_all;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    task::JoinHandle,
    time::sleep,
};

use crate::{clock, server::cpu};

/// How often is looked whether enough is done.
const LOOK: Duration = Duration::from_millis(5);
/// Until when something has to be done, in nanoseconds.
const PATIENCE: u64 = 10_000_000_000;

/// The last report of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) count: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) commands: u64,
    /// How late things were, in microseconds.
    pub(crate) late: Vec<f64>,
}

/// A process at work.
pub(crate) struct Process {
    child: Child,
    orders: ChildStdin,
    told: Arc<Mutex<Told>>,
    reader: JoinHandle<()>,
}

impl Process {
    /// Starts it, and waits until it is ready. None: it ended instead, and has said why.
    pub(crate) async fn start(mut command: Command) -> Option<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let orders = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while lines.next_line().await.unwrap()? != "ready" {}
        let told = Arc::new(Mutex::default());
        let reader = tokio::spawn(read(lines, told.clone()));
        Some(Self { child, orders, told, reader })
    }

    pub(crate) async fn begin(&mut self) {
        self.orders.write_all(b"go\n").await.unwrap();
    }

    pub(crate) fn told(&self) -> Told {
        self.told.lock().unwrap().clone()
    }

    /// Seconds of the processor until now.
    fn cpu(&self) -> f64 {
        self.child.id().map_or(0.0, cpu)
    }

    /// Ends it without a warning, and says when.
    pub(crate) async fn kill(mut self) -> u64 {
        let now = clock::monotonic();
        self.child.kill().await.unwrap();
        now
    }

    /// Lets it end, and returns its last report.
    pub(crate) async fn end(mut self) -> Told {
        drop(self.orders);
        self.reader.await.unwrap();
        self.child.wait().await.unwrap();
        Arc::into_inner(self.told).unwrap().into_inner().unwrap()
    }
}

async fn read(mut lines: Lines<BufReader<ChildStdout>>, told: Arc<Mutex<Told>>) {
    while let Ok(Some(line)) = lines.next_line().await {
        let mut told = told.lock().unwrap();
        if let Some(late) = line.strip_prefix("late") {
            told.late = late.split_whitespace().map(|number| number.parse().unwrap()).collect();
            continue;
        }
        let numbers: Vec<u64> = line.split(' ').map_while(|word| word.parse().ok()).collect();
        if let [count, first, last, commands] = numbers[..] {
            *told = Told { count, first, last, commands, late: Vec::new() };
        }
    }
}

/// The sum of the reports of all processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    pub(crate) count: f64,
    /// From the first start to the last end, or to the order to stop, if that came first.
    pub(crate) seconds: f64,
    /// Seconds of the processor.
    pub(crate) cpu: f64,
    pub(crate) commands: f64,
    pub(crate) late: Vec<f64>,
}

impl Done {
    /// Tasks a second.
    pub(crate) fn rate(&self) -> f64 {
        self.count / self.seconds.max(1e-6)
    }
}

/// Has the processes begin together, and lets them end when so many are done, or after that time from the first start
/// on. None: one ended by itself, and has said why; or nothing was done for much too long.
pub(crate) async fn run(
    commands: impl IntoIterator<Item = Command>,
    enough: usize,
    at_most: Duration,
) -> Option<Done> {
    let started = join_all(commands.into_iter().map(Process::start)).await;
    let mut crew = started.into_iter().collect::<Option<Vec<_>>>()?;
    let cpu = |crew: &[Process]| crew.iter().map(Process::cpu).sum::<f64>();
    let before = cpu(&crew);
    let began = clock::monotonic();
    for process in &mut crew {
        process.begin().await;
    }
    let is_done =
        |crew: &[Process]| crew.iter().map(|process| process.told().count).sum::<u64>() >= enough as u64;
    let end = |crew: &[Process]| {
        let starts = crew.iter().map(|process| process.told().first).filter(|first| *first > 0);
        starts.min().map_or(began + PATIENCE, |first| first + at_most.as_nanos() as u64)
    };
    while !is_done(&crew) && clock::monotonic() < end(&crew) {
        if crew.iter().any(|process| process.reader.is_finished()) {
            return None;
        }
        sleep(LOOK).await;
    }
    let (used, stopped) = (cpu(&crew) - before, clock::monotonic());
    let is_early = !is_done(&crew);
    let mut done = Done { cpu: used, ..Done::default() };
    let (mut first, mut last) = (stopped, 0);
    for process in crew {
        let told = process.end().await;
        if told.count > 0 {
            (first, last) = (first.min(told.first), last.max(told.last));
        }
        done.count += told.count as f64;
        done.commands += told.commands as f64;
        done.late.extend(told.late);
    }
    let last = if is_early { stopped } else { last };
    if done.count == 0.0 {
        eprintln!("nothing was done");
        return None;
    }
    done.seconds = last.saturating_sub(first) as f64 / 1e9;
    Some(done)
}
