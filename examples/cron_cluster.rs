//! Cron on a cluster: six hosts that start the same job at the same second, on a file system that all of them
//! mount.
//!
//! Every host has the same line in its crontab, and nothing decides who is first. The queue spaces the
//! starts, lets at most two backups run at once, and tells a host at once if its turn would come too late to
//! be of use. A host that dies in the middle of its backup frees its place when its lease ends.
//!
//!     0 3 * * *  backup-with-turn file:/shared/cron.json?clock=server
//!
//! `clock=server` takes the time from the file server, because the hosts' own clocks differ. From a shell the
//! program does the same without a line of Rust:
//! `interval-queue run --every 10min --max-running 2 --start-within 2h -- backup /srv`.
//!
//!     cargo run --example cron_cluster

use std::{env, error::Error, process::Stdio, time::Duration};

use interval_queue::{ErrorKind, IntervalQueue};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    sync::mpsc,
    time::{Instant, sleep},
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const INTERVAL: Duration = Duration::from_millis(250);
const BACKUP: Duration = Duration::from_millis(400);
const LEASE: Duration = Duration::from_secs(2);
/// A host that would start later than this leaves it to the next night.
const PATIENCE: Duration = Duration::from_secs(60);
const HOSTS: [&str; 6] = ["ant", "bee", "cat", "dog", "eel", "fox"];

#[tokio::main]
async fn main() -> Result<()> {
    match (env::args().nth(1), env::var("CRON_HOST")) {
        (Some(state), Ok(host)) => backup(&state, &host).await,
        _ => cluster().await,
    }
}

/// What cron starts on each host.
async fn backup(state: &str, host: &str) -> Result<()> {
    let queue = IntervalQueue::builder("backup")
        .interval(INTERVAL)
        .max_running(2)
        .lease(LEASE)
        .label(host)
        .connect(state)
        .await?;
    let turn = match queue.turn().start_within(PATIENCE).await {
        Ok(turn) => turn,
        Err(error) if error.kind() == ErrorKind::TooLate => {
            println!("skip {error}");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    println!("start ticket {}", turn.ticket());
    sleep(BACKUP).await; // the backup; while the turn lives, it counts as running
    println!("done");
    drop(turn);
    queue.close().await;
    Ok(())
}

// The rest is the cluster.

#[allow(clippy::disallowed_methods, reason = "the example shows how time passes")]
async fn cluster() -> Result<()> {
    let shared = tempfile::tempdir()?;
    let state = format!("file:{}?clock=server", shared.path().join("cron.json").display());
    let (said, mut lines) = mpsc::unbounded_channel();
    let began = Instant::now();
    let mut hosts = Vec::new();
    for host in HOSTS {
        hosts.push(start(host, &state, said.clone())?);
    }
    drop(said);
    println!(
        "Six hosts begin at once: a start every {INTERVAL:?}, two at a time, and bee dies in its backup\n"
    );

    let (mut starts, mut running, mut most, mut done) = (Vec::new(), 0, 0, 0);
    while done < HOSTS.len() - 1 {
        let (host, line) = lines.recv().await.ok_or("all hosts are gone")?;
        println!("{:6.2} s  {host}  {line}", began.elapsed().as_secs_f64());
        if line.starts_with("start") {
            starts.push(began.elapsed());
            running += 1;
            most = most.max(running);
            if host == "bee" {
                hosts[1].kill().await?;
                running -= 1;
                println!("{:6.2} s  bee  is dead", began.elapsed().as_secs_f64());
            }
        } else if line == "done" {
            (running, done) = (running - 1, done + 1);
        } else {
            return Err("a host gave up".into());
        }
    }
    let took = starts[starts.len() - 1] - starts[0];
    println!("\n{} starts in {took:.2?}, at most {most} at once", starts.len());
    // Half an interval, because the first one may have been seen late.
    let least = INTERVAL * (starts.len() as u32 - 1) - INTERVAL / 2;
    if most > 2 || took < least || starts.len() != HOSTS.len() {
        return Err("more was started than the queue allows".into());
    }
    Ok(())
}

/// Starts what cron starts on a host, and passes on what it says.
fn start(
    host: &'static str,
    state: &str,
    said: mpsc::UnboundedSender<(&'static str, String)>,
) -> Result<Child> {
    let mut command = Command::new(env::current_exe()?);
    command.arg(state).env("CRON_HOST", host).stdout(Stdio::piped()).kill_on_drop(true);
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
