//! A queue moves from a directory to a database, while workers run at both ends.
//!
//! Three hundred tasks are in a directory. Two worker processes run them there, two wait at the database. The queue
//! is moved in the middle of the work; then the old workers have nothing to do and can be switched off. Each task has
//! run once, here or there.
//!
//!     cargo run --features moving --example moving                              # to SQLite
//!     cargo run --features moving --example moving -- postgres://user:password@127.0.0.1/jobs

use std::{
    collections::BTreeSet,
    env,
    error::Error,
    fs,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use interval_queue_tasks::{Context, Order, Selector, State, Task, TaskError, TaskQueue, Worker};
use tokio::process::{Child, Command};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const TASKS: usize = 300;

/// Writes a line for each run: its effect, of which there is to be one for each task.
async fn resize(context: Context<PathBuf>, picture: usize) -> std::result::Result<(), TaskError> {
    tokio::time::sleep(Duration::from_millis(20)).await;
    let mut runs = fs::OpenOptions::new().create(true).append(true).open(context.state().as_path())?;
    Ok(runs.write_all(format!("{picture}\n").as_bytes())?)
}

/// The numbers of those that have run.
fn runs(file: &Path) -> Vec<usize> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

async fn open(url: &str) -> Result<TaskQueue> {
    Ok(TaskQueue::builder("pictures").connect(url).await?)
}

async fn child(url: &str, runs: PathBuf) -> Result<()> {
    let queue = open(url).await?;
    Worker::builder(&queue).state(runs).jobs(2).handler("resize", resize).build()?.run().await?;
    Ok(())
}

async fn parent() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("runs");
    let from = format!("dir:{}", directory.path().join("jobs").display());
    let to = env::args().nth(1);
    let to = to.unwrap_or_else(|| format!("sqlite:{}", directory.path().join("jobs.db").display()));
    let (old, new) = (open(&from).await?, open(&to).await?);
    old.add_all((0..TASKS).map(|picture| Task::new("resize", &picture))).await?;
    let start = |url: &str| -> std::io::Result<Child> {
        Command::new(env::current_exe()?).env("MOVING", url).env("RUNS", &file).kill_on_drop(true).spawn()
    };
    let _workers = [start(&from)?, start(&from)?, start(&to)?, start(&to)?];
    while runs(&file).len() < TASKS / 10 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    let moved = old
        .move_to(&new, &Selector::default(), "the database", |so_far| {
            println!("{} moved, {} run and follow if they are to run again", so_far.new, so_far.running);
        })
        .await?;
    let ended = [State::Done, State::Failed, State::Cancelled, State::Purged];
    let left = Selector::states(State::ALL.into_iter().filter(|state| !ended.contains(state)));
    if !old.page(&left, Order::Oldest, 1, false).await?.tasks.is_empty() {
        return Err("something is left in the directory".into());
    }
    while !new.page(&left, Order::Oldest, 1, false).await?.tasks.is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let runs = runs(&file);
    let distinct: BTreeSet<usize> = runs.iter().copied().collect();
    println!(
        "{} tasks ran, {} of them after the move; {} ran twice",
        distinct.len(),
        moved.new,
        runs.len() - distinct.len()
    );
    if (runs.len(), distinct.len()) != (TASKS, TASKS) || moved.new == 0 {
        return Err("not each task has run once".into());
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    match (env::var("MOVING"), env::var("RUNS")) {
        (Ok(url), Ok(runs)) => child(&url, runs.into()).await,
        _ => parent().await,
    }
}
