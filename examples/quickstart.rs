//! Jobs: four processes share one rate through a JSON file. Tasks: a worker runs what was stored.
//!
//! The program starts itself four times. Each process adds its jobs in bursts, faster than the
//! interval allows, and prints when each one started. Together they keep the interval, in the order
//! of their tickets. Then the first process adds three tasks and runs a worker: the second task fails
//! once and is retried. Here the tasks are in memory; `sqlite:mail.db` would keep them.
//!
//!     cargo run --example quickstart

use std::{
    env,
    error::Error,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc::{Sender, channel},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures::future::try_join_all;
use interval_queue::IntervalQueue;
use interval_queue_tasks::{Context, Task, TaskError, TaskQueue, Worker};

const INTERVAL: Duration = Duration::from_millis(200);
const PROCESSES: [&str; 4] = ["A", "B", "C", "D"];

/// What each of the four processes does: open the queue, add jobs, use their results.
#[tokio::main(flavor = "current_thread")]
async fn service(name: &str, state: &str) -> Result<(), Box<dyn Error>> {
    let queue = IntervalQueue::builder("quickstart").interval(INTERVAL).label(name).connect(state).await?;
    for _burst in 0..3 {
        let jobs = try_join_all((0..2).map(|_| queue.add(async { now() }))).await?;
        for job in jobs {
            let ticket = job.ticket().await?;
            println!("{ticket} {}", job.await?.as_micros());
        }
    }
    queue.close().await;
    Ok(())
}

/// What any process may do with tasks: add them, and run a worker.
#[tokio::main(flavor = "current_thread")]
async fn tasks() -> Result<(), Box<dyn Error>> {
    let queue = TaskQueue::builder("mail").interval(INTERVAL).connect("memory:").await?;
    for name in ["ada", "bob", "cid"] {
        // A failed attempt is retried after 300 ms, then after twice that, up to five attempts.
        let (first, longest) = (Duration::from_millis(300), Duration::from_secs(60));
        queue.add(Task::new("mail", name).backoff(first, longest)).await?;
    }
    let worker = Worker::builder(&queue).handler("mail", send).build()?;
    worker.run_until_empty().await?;
    Ok(())
}

async fn send(context: Context, name: String) -> Result<String, TaskError> {
    let attempt = context.attempt();
    if name == "bob" && attempt == 1 {
        println!("    {name}, attempt {attempt}: failed");
        return Err(TaskError::from("the mailbox is busy"));
    }
    println!("    {name}, attempt {attempt}: sent");
    Ok("sent".to_owned())
}

#[allow(clippy::disallowed_methods, reason = "the time of day is what the example shows")]
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

// The rest starts the processes and draws what they say.

struct Start {
    process: usize,
    ticket: u64,
    at: Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    if let (Ok(name), Ok(state)) = (env::var("QUICKSTART_NAME"), env::var("QUICKSTART_STATE")) {
        return service(&name, &state);
    }
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("pace.json");
    println!(
        "Four processes, one queue, one start every {INTERVAL:?}. All they share is {}\n",
        file.display()
    );
    println!("    start   ticket   process");

    let (sender, starts) = channel();
    let mut children = Vec::new();
    for (process, name) in PROCESSES.iter().enumerate() {
        let child = Command::new(env::current_exe()?)
            .env("QUICKSTART_NAME", name)
            .env("QUICKSTART_STATE", format!("file:{}", file.display()))
            .stdout(Stdio::piped())
            .spawn()?;
        children.push(listen(child, process, sender.clone())?);
    }
    drop(sender);

    let mut all: Vec<Start> = Vec::new();
    for start in starts {
        let first = all.first().map_or(start.at, |first| first.at);
        let since = start.at.saturating_sub(first).as_secs_f64();
        let lanes = "·       ".repeat(start.process);
        println!("{since:7.3} s {:8}   {lanes}{}", start.ticket, PROCESSES[start.process]);
        all.push(start);
    }
    for child in children {
        let status = child.join().map_err(|_| "a listener panicked")??.wait()?;
        if !status.success() {
            return Err(format!("a process ended with {status}").into());
        }
    }
    sum_up(&all);
    // It ends in blanks: room to be written in place.
    let left = std::fs::read_to_string(&file)?;
    println!("\nThe file they leave behind, with nobody waiting any more:\n\n{}\n", left.trim_end());
    println!("Three tasks, the second of which fails once:\n");
    tasks()?;
    println!(
        "\nNext: look into examples/quickstart.rs, or run\n    cargo run --features http --example api_client"
    );
    Ok(())
}

/// Passes on what a process says.
fn listen(
    mut child: Child,
    process: usize,
    sender: Sender<Start>,
) -> Result<thread::JoinHandle<std::io::Result<Child>>, Box<dyn Error>> {
    let lines = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
    Ok(thread::spawn(move || {
        for line in lines {
            let line = line?;
            let (ticket, micros) = line.split_once(' ').unwrap_or_default();
            if let (Ok(ticket), Ok(micros)) = (ticket.parse(), micros.parse()) {
                // The receiver is there as long as we are.
                let _ = sender.send(Start { process, ticket, at: Duration::from_micros(micros) });
            }
        }
        Ok(child)
    }))
}

fn sum_up(starts: &[Start]) {
    let mut by_time: Vec<_> = starts.iter().collect();
    by_time.sort_by_key(|start| start.at);
    let mut gaps: Vec<_> = by_time.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    gaps.sort();
    let millis = |gap: Option<&Duration>| gap.map_or(0.0, |gap| gap.as_secs_f64() * 1000.0);
    println!(
        "\n{} starts, {} gaps: shortest {:.1} ms, median {:.1} ms, longest {:.1} ms; {}",
        starts.len(),
        gaps.len(),
        millis(gaps.first()),
        millis(gaps.get(gaps.len() / 2)),
        millis(gaps.last()),
        if by_time.is_sorted_by_key(|start| start.ticket) {
            "in ticket order"
        } else {
            "not in ticket order"
        },
    );
}
