//! The processes that add tasks and run them, of this library and of others.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use clap::Args;
use interval_queue_tasks::{Context, Kind, Task, TaskError, TaskQueue, Worker, contract::Counted};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, Command},
    time::sleep,
};

use crate::{
    place::{Hand, PAYLOAD},
    process::cpu,
    speed::PROCESSES,
};

/// A process that adds some tasks and runs as many. It begins at a line on its standard input.
#[derive(Clone, Debug, Args)]
pub(crate) struct Crew {
    url: String,
    /// How many a step settles and leases, or how many run at once.
    batch: usize,
    /// How many it adds in all.
    tasks: usize,
    /// How many are added in one command.
    #[arg(default_value = "1000")]
    added: usize,
    /// By a worker of the library, not by steps alone.
    #[arg(long)]
    worker: bool,
}

impl Crew {
    pub(crate) async fn work(self) {
        if self.worker { self.run_worker().await } else { self.make_steps().await }
    }

    async fn make_steps(self) {
        let mut hand = Hand::at(&self.url).await;
        let before = begin().await;
        let batch = u32::try_from(self.batch).unwrap();
        let added = self.added.max(self.batch);
        for _ in 0..self.tasks / added {
            hand.add(added).await;
            for _ in 0..added / self.batch {
                hand.step(batch).await;
            }
        }
        // What others have added and nobody has yet.
        while hand.step(batch).await > 0 {}
        println!("{}", cpu() - before);
    }

    async fn run_worker(self) {
        let queue = TaskQueue::builder("bench").connect(&self.url).await.unwrap();
        let nothing = async |_: Context<()>, _: String| Ok::<_, TaskError>(());
        let jobs = self.batch.try_into().unwrap();
        let worker = Worker::builder(&queue).handler("default", nothing).jobs(jobs).build().unwrap();
        let before = begin().await;
        let payload = "x".repeat(PAYLOAD);
        for _ in 0..self.tasks / self.added {
            queue.add_all((0..self.added).map(|_| Task::new("default", &payload))).await.unwrap();
        }
        // No longer than that, which an idle worker notices late.
        let all = (self.tasks * PROCESSES) as u64;
        let ended = async {
            while ended(&queue).await < all {
                sleep(Duration::from_millis(10)).await;
            }
        };
        worker.run_until(ended).await.unwrap();
        println!("{}", cpu() - before);
    }
}

/// How many tasks have ended.
async fn ended(queue: &TaskQueue) -> u64 {
    let counts = queue.overview().await.unwrap().counts;
    let done = |(_, counted, number): (Kind, Counted, u64)| (counted == Counted::EverDone).then_some(number);
    counts.into_iter().filter_map(done).sum()
}

/// Waits for the line. What the process has used of the processor until then.
async fn begin() -> f64 {
    println!("ready");
    BufReader::new(tokio::io::stdin()).read_line(&mut String::new()).await.unwrap();
    cpu()
}

/// What was found of processes that worked together.
pub(crate) struct Found {
    /// Tasks in a second.
    pub(crate) rate: f64,
    /// Microseconds of the processor for a task.
    pub(crate) cpu: f64,
}

/// Has the processes begin together, and measures until the last one has ended its work.
pub(crate) async fn measure(commands: impl IntoIterator<Item = Command>, tasks: usize) -> Found {
    let start = |mut command: Command| {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap()
    };
    let mut crew: Vec<Child> = commands.into_iter().map(start).collect();
    let mut lines = Vec::new();
    for child in &mut crew {
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(said.next_line().await.unwrap().as_deref(), Some("ready"));
        lines.push(said);
    }
    let began = Instant::now();
    for child in &mut crew {
        child.stdin.take().unwrap().write_all(b"\n").await.unwrap();
    }
    let mut used = 0.0;
    for said in &mut lines {
        used += said.next_line().await.unwrap().unwrap().parse::<f64>().unwrap();
    }
    let took = began.elapsed().max(Duration::from_micros(1));
    Found { rate: tasks as f64 / took.as_secs_f64(), cpu: used * 1e6 / tasks as f64 }
}
