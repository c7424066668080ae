//! effectum, in one process: adds tasks, runs them with four workers, or both.
//!
//! Its orders and reports are those of `process.py` in the folder above.

use std::{
    env, io,
    io::Write,
    path::Path,
    process, thread,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use effectum::{Error, Job, JobRunner, Queue, RunningJob, Worker};
use rustix::time::{ClockId, clock_gettime};

const WORKERS: usize = 4;
/// Maximum number of tasks that it is ahead if it adds what it runs, for each of four processes of other libraries.
const AHEAD: u64 = 2_000;
/// Nanoseconds within which tasks become due that are added together, as by `../../tasks/roles.rs`.
const TICK: u64 = 2_000_000;

/// What has been done.
#[derive(Debug, Default)]
struct Tally {
    count: AtomicU64,
    first: AtomicU64,
    last: AtomicU64,
    /// Whether the payload of a task is the instant at which it is due.
    is_timed: bool,
    /// Microseconds from there to the start.
    late: Mutex<Vec<u64>>,
}

fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Tally {
    fn add(&self, count: usize) {
        let now = monotonic();
        let _ = self.first.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        self.last.store(now, Ordering::Relaxed);
        self.count.fetch_add(count as u64, Ordering::Relaxed);
    }

    fn start(&self, payload: &[u8]) {
        self.add(1);
        if self.is_timed {
            let due: u64 = std::str::from_utf8(payload).unwrap().parse().unwrap();
            self.late.lock().unwrap().push((monotonic() - due) / 1_000);
        }
    }

    fn report(&self) {
        let [count, first, last] =
            [&self.count, &self.first, &self.last].map(|number| number.load(Ordering::Relaxed));
        let mut out = io::stdout().lock();
        writeln!(out, "{count} {first} {last} 0").unwrap();
        out.flush().unwrap();
    }
}

async fn nothing(job: RunningJob, tally: Arc<Tally>) -> Result<(), Error> {
    tally.start(&job.payload);
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
        panic!("give: FILE ROLE SETTING DURABILITY COUNT BATCH SIZE")
    };
    let [count, batch, size] = [count, batch, size].map(|number| number.parse::<usize>().unwrap());
    // effectum means to use the write-ahead log, but sets `journal`, not `journal_mode`. The file remembers the mode.
    let wal = rusqlite::Connection::open(file).unwrap();
    wal.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
    let queue = Queue::new(Path::new(file)).await.unwrap();
    drop(wal);

    println!("ready");
    io::stdin().read_line(&mut String::new()).unwrap();
    let tally = Arc::new(Tally { is_timed: role == "timed", ..Tally::default() });
    let reported = tally.clone();
    thread::spawn(move || loop {
        thread::sleep(Duration::from_millis(20));
        reported.report();
    });
    let reported = tally.clone();
    thread::spawn(move || {
        while io::stdin().read_line(&mut String::new()).unwrap() > 0 {}
        reported.report();
        let late: Vec<String> = reported.late.lock().unwrap().iter().map(u64::to_string).collect();
        println!("late {}", late.join(" "));
        process::exit(0);
    });
    let mut workers = Vec::new();
    if role != "add" {
        let jobs = setting.split(' ').next().unwrap().parse().unwrap();
        for _ in 0..WORKERS {
            let runner = JobRunner::builder("default", nothing).build();
            let worker = Worker::builder(&queue, tally.clone()).max_concurrency(jobs).jobs([runner]);
            workers.push(worker.build().await.unwrap());
        }
    }
    match &role[..] {
        "add" => {
            for _ in 0..count / batch {
                add(&queue, vec![vec![b'x'; size]; batch]).await;
                tally.add(batch);
            }
        }
        "steady" => {
            let mut added = 0;
            loop {
                if added < tally.count.load(Ordering::Relaxed) + AHEAD {
                    add(&queue, vec![vec![b'x'; size]; batch]).await;
                    added += batch as u64;
                } else {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            }
        }
        "timed" => offer(&queue, &tally, count as f64).await,
        _ => {}
    }
    std::future::pending().await
}

async fn add(queue: &Queue, mut payloads: Vec<Vec<u8>>) {
    let job = |payload| Job::builder("default").payload(payload).build();
    if payloads.len() == 1 {
        queue.add_job(job(payloads.remove(0))).await.unwrap();
    } else {
        queue.add_jobs(payloads.into_iter().map(job).collect()).await.unwrap();
    }
}

/// Offers tasks at random instants, `rate` a second (a Poisson process), whether or not earlier ones have started.
async fn offer(queue: &Queue, tally: &Tally, rate: f64) {
    let mut due = monotonic();
    loop {
        let (now, mut payloads) = (monotonic(), Vec::new());
        while due <= now {
            payloads.push(due.to_string().into_bytes());
            due += (-(1.0 - rand::random::<f64>()).ln() / rate * 1e9) as u64;
        }
        let count = payloads.len();
        add(queue, payloads).await;
        tally.add(count);
        let next = due.max(now + TICK);
        // The main thread runs nothing else.
        thread::sleep(Duration::from_nanos(next.saturating_sub(monotonic())));
    }
}
