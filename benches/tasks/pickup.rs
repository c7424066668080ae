//! How soon an idle worker in another process starts a task that is added.

use std::{env, process::Stdio, time::Duration};

use clap::Args;
use interval_queue_tasks::{Context, Json, Task, TaskError, TaskQueue, Worker};
use rustix::time::{ClockId, clock_gettime};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    time::sleep,
};

use crate::{
    figures::{figure, median},
    place::Place,
};

const ADDS: usize = 300;

/// Nanoseconds of a clock that all processes of a host share.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// A process whose handler prints how long ago its task was added.
#[derive(Clone, Debug, Args)]
pub(crate) struct Idle {
    url: String,
}

impl Idle {
    pub(crate) async fn work(self) {
        let queue = TaskQueue::builder("bench").connect(&self.url).await.unwrap();
        let handler = async |_: Context<()>, added: u64| {
            println!("{}", now() - added);
            Ok::<_, TaskError>(Json::default())
        };
        Worker::builder(&queue).handler("default", handler).build().unwrap().run().await.unwrap();
    }
}

pub(crate) async fn measure(runs: u32, share: usize) {
    let mut medians = Vec::new();
    for _ in 0..runs {
        let place = Place::new(false);
        let queue = TaskQueue::builder("bench").connect(&place.url).await.unwrap();
        let mut command = Command::new(env::current_exe().unwrap());
        command.arg("pickup").arg(&place.url).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut all = Vec::new();
        for _ in 0..(ADDS / share).max(3) {
            queue.add(Task::new("default", &now())).await.unwrap();
            let nanos: f64 = said.next_line().await.unwrap().unwrap().parse().unwrap();
            all.push(nanos / 1e3);
            sleep(Duration::from_millis(20)).await;
        }
        medians.push(median(all).unwrap());
    }
    let middle = figure(median(medians).unwrap());
    println!("## From adding to running\n");
    println!(
        "From `add` in one process to the handler in another one that is idle: {middle} µs in the middle.\n"
    );
}
