//! effectum, in one process: adds tasks and runs them with four workers.
//!
//! Its arguments are the database, how many are added at once, how many a worker runs at once, and how many there are
//! in all. It speaks as `worker.py` of `../huey` does.

use std::{
    io, mem,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use effectum::{Error, Job, JobRunner, Queue, RunningJob, Worker};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::Notify;

const WORKERS: usize = 4;

/// Tells when all have run.
#[derive(Debug, Default)]
struct Left {
    tasks: AtomicUsize,
    none: Notify,
}

async fn nothing(_: RunningJob, left: Arc<Left>) -> Result<(), Error> {
    if left.tasks.fetch_sub(1, Ordering::Relaxed) == 1 {
        left.none.notify_one();
    }
    Ok(())
}

fn main() {
    // One thread runs the tasks, as with us; the one that writes to the database is effectum's own.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(work());
}

async fn work() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, added, places, tasks] = &arguments[..] else { panic!("give FILE ADDED PLACES TASKS") };
    let [added, places, tasks] = [added, places, tasks].map(|number| number.parse::<usize>().unwrap());
    // effectum means to use the write-ahead log, but sets `journal`, not `journal_mode`. The file remembers the mode.
    let wal = rusqlite::Connection::open(file).unwrap();
    wal.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
    let queue = Queue::new(Path::new(file)).await.unwrap();
    drop(wal);
    let left = Arc::new(Left { tasks: tasks.into(), none: Notify::new() });

    println!("ready");
    io::stdin().read_line(&mut String::new()).unwrap();
    let before = cpu();
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        let runner = JobRunner::builder("default", nothing).build();
        let places = places.try_into().unwrap();
        let worker = Worker::builder(&queue, left.clone()).max_concurrency(places).jobs([runner]);
        workers.push(worker.build().await.unwrap());
    }
    let job = || Job::builder("default").payload(vec![b'x'; 100]).build();
    for _ in 0..tasks / added {
        let mut jobs: Vec<Job> = (0..added).map(|_| job()).collect();
        match &mut jobs[..] {
            [job] => drop(queue.add_job(mem::take(job)).await.unwrap()),
            _ => drop(queue.add_jobs(jobs).await.unwrap()),
        }
    }
    left.none.notified().await;
    // The workers write down what has just ended.
    queue.close(Duration::from_secs(60)).await.unwrap();
    println!("{}", cpu() - before);
}

/// What this process has used of the processor, in seconds.
fn cpu() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}
