//! A nightly backup of three hosts of which one is dead: each night it runs once, wherever somebody is left.
//!
//! Every host runs the same service, which says the schedule when it starts and works. Nobody is the one that has the
//! crontab: whichever worker steps first makes the task of a night, and some worker runs it. Here a night lasts a
//! second, and the host that has the third backup is killed in the middle of it. That backup runs again on another
//! host, once its lease is over, and no night is left out or made twice. From a shell the program does the same without
//! a line of Rust:
//!
//!     interval-queue schedule add nightly --cron '30 2 * * *' --zone Europe/Berlin --kind backup
//!     interval-queue work --kind backup -- backup-all    # on each host
//!
//!     cargo run --features tasks --example nightly

use std::{
    collections::BTreeMap,
    env,
    error::Error,
    process::Stdio,
    time::{Duration, UNIX_EPOCH},
};

use interval_queue_tasks::{
    Context, Missed, Order, Schedule, Selector, Task, TaskError, TaskQueue, Worker, connect,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    sync::mpsc,
    time::sleep,
};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const HOSTS: [&str; 3] = ["ant", "bee", "cat"];
const NIGHT: Duration = Duration::from_secs(1);
const BACKUP: Duration = Duration::from_millis(300);
const LEASE: Duration = Duration::from_secs(2);
const NIGHTS: usize = 7;

#[tokio::main]
async fn main() -> Result<()> {
    match (env::args().nth(1), env::var("NIGHTLY_HOST")) {
        (Some(state), Ok(host)) => serve(&state, &host).await,
        _ => cluster().await,
    }
}

/// What runs on each host.
async fn serve(state: &str, host: &str) -> Result<()> {
    let queue = TaskQueue::builder("jobs").open(&connect(state).await?).await?;
    // On a real cluster: Schedule::cron("nightly", "30 2 * * *", "Europe/Berlin", …). Said again it changes nothing.
    let nightly = Schedule::every("nightly", NIGHT, Task::new("backup", &"all"));
    queue.set_schedule(nightly.missed(Missed::UpTo(10))).await?;
    let worker = Worker::builder(&queue).label(host).lease(LEASE).handler("backup", backup).build()?;
    worker.run().await?;
    Ok(())
}

async fn backup(context: Context, what: String) -> std::result::Result<(), TaskError> {
    println!("backs up {what} for {}, attempt {}", night(&context), context.attempt());
    sleep(BACKUP).await;
    println!("done for {}", night(&context));
    Ok(())
}

/// The night that a run stands for, whenever it runs.
fn night(context: &Context) -> u64 {
    let at = context.scheduled().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    at.unwrap_or_default().as_secs()
}

// The rest is the cluster.

async fn cluster() -> Result<()> {
    let shared = tempfile::tempdir()?;
    let state = format!("sqlite:{}", shared.path().join("jobs.db").display());
    let (said, mut lines) = mpsc::unbounded_channel();
    let mut hosts = BTreeMap::new();
    for host in HOSTS {
        hosts.insert(host, start(host, &state, said.clone())?);
    }
    drop(said);
    let (mut begun, mut done) = (0, 0);
    while done < NIGHTS {
        let (host, line) = lines.recv().await.ok_or("all hosts are gone")?;
        println!("{host}  {line}");
        done += usize::from(line.starts_with("done"));
        begun += usize::from(line.starts_with("backs up"));
        if begun == 3
            && line.starts_with("backs up")
            && let Some(mut dead) = hosts.remove(host)
        {
            dead.kill().await?;
            println!("{host}  is dead");
        }
    }

    let queue = TaskQueue::builder("jobs").open(&connect(&state).await?).await?;
    let tasks = queue.page(&Selector::default(), Order::Oldest, 100, false).await?.tasks;
    let mut nights: Vec<_> =
        tasks.into_iter().filter_map(|stored| Some((stored.task.schedule?.at, stored.task.id))).collect();
    nights.sort_unstable();
    for (_, id) in nights.iter().take(NIGHTS) {
        queue.wait::<()>(*id).await?;
    }
    if nights.windows(2).any(|pair| (pair[1].0 - pair[0].0).to_duration() != NIGHT) {
        return Err(format!("the nights are {nights:?}").into());
    }
    println!("\n{NIGHTS} nights are done, each once, and none is left out");
    Ok(())
}

/// Starts a host, and passes on what it says.
fn start(
    host: &'static str,
    state: &str,
    said: mpsc::UnboundedSender<(&'static str, String)>,
) -> Result<Child> {
    let mut command = Command::new(env::current_exe()?);
    command.arg(state).env("NIGHTLY_HOST", host).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
    tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            // The receiver is there as long as it wants to hear.
            let _ = said.send((host, line));
        }
    });
    Ok(child)
}
