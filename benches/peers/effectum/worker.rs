//! effectum, in one process: adds tasks, or runs them with four workers.
//!
//! It is told and tells the same as `process.py` of the folder above.

use std::{
    env, io,
    io::Write,
    path::Path,
    process, thread,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use effectum::{Error, Job, JobRunner, Queue, RunningJob, Worker};
use rustix::time::{ClockId, clock_gettime};

const WORKERS: usize = 4;

/// What has been done.
#[derive(Debug, Default)]
struct Tally {
    count: AtomicU64,
    first: AtomicU64,
    last: AtomicU64,
}

impl Tally {
    fn add(&self, count: usize) {
        let now = clock_gettime(ClockId::Monotonic);
        let now = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        let _ = self.first.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        self.last.store(now, Ordering::Relaxed);
        self.count.fetch_add(count as u64, Ordering::Relaxed);
    }

    fn tell(&self) {
        let [count, first, last] =
            [&self.count, &self.first, &self.last].map(|number| number.load(Ordering::Relaxed));
        let mut out = io::stdout().lock();
        writeln!(out, "{count} {first} {last} 0").unwrap();
        out.flush().unwrap();
    }
}

async fn nothing(_: RunningJob, tally: Arc<Tally>) -> Result<(), Error> {
    tally.add(1);
    Ok(())
}

fn main() {
    // One thread runs the tasks, as with us; the one that writes to the database is effectum's own.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(work());
}

async fn work() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [file, role, setting, _, count, batch, size] = &arguments[..] else {
        panic!("give FILE ROLE SETTING DURABILITY COUNT BATCH SIZE")
    };
    let [count, batch, size] = [count, batch, size].map(|number| number.parse::<usize>().unwrap());
    // effectum means to use the write-ahead log, but sets `journal`, not `journal_mode`. The file remembers the mode.
    let wal = rusqlite::Connection::open(file).unwrap();
    wal.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
    let queue = Queue::new(Path::new(file)).await.unwrap();
    drop(wal);

    println!("ready");
    io::stdin().read_line(&mut String::new()).unwrap();
    let tally = Arc::new(Tally::default());
    let told = tally.clone();
    thread::spawn(move || loop {
        thread::sleep(Duration::from_millis(20));
        told.tell();
    });
    let told = tally.clone();
    thread::spawn(move || {
        while io::stdin().read_line(&mut String::new()).unwrap() > 0 {}
        told.tell();
        process::exit(0);
    });
    let mut workers = Vec::new();
    if role == "work" {
        let jobs = setting.split(' ').next().unwrap().parse().unwrap();
        for _ in 0..WORKERS {
            let runner = JobRunner::builder("default", nothing).build();
            let worker = Worker::builder(&queue, tally.clone()).max_concurrency(jobs).jobs([runner]);
            workers.push(worker.build().await.unwrap());
        }
    } else {
        let job = || Job::builder("default").payload(vec![b'x'; size]).build();
        for _ in 0..count / batch {
            if batch == 1 {
                queue.add_job(job()).await.unwrap();
            } else {
                queue.add_jobs((0..batch).map(|_| job()).collect()).await.unwrap();
            }
            tally.add(batch);
        }
    }
    std::future::pending().await
}
