//! One case, in this process.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use futures::future::join_all;
use interval_queue::{IntervalQueue, IntervalQueues, SharedState};
use interval_queue_test_support::RedisServer;
use tokio::{task::unconstrained, time::sleep};

use crate::{
    keyed_case::{Case, Doing, Found},
    process,
};

/// An interval in which nothing starts while this measures.
const LONG: Duration = Duration::from_secs(3600);
/// How many openings are under way at once.
const TOGETHER: usize = 100;

/// Queues that are kept whatever happens, and what their application was told.
struct Crowd {
    queues: IntervalQueues,
    failures: Arc<AtomicU64>,
    count: u32,
}

/// None: this state is not to be had here.
pub(crate) fn measure(case: &Case) -> Option<Found> {
    let place = case.kind.place()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    Some(runtime.block_on(async { work(case, place.open().await, place.server()).await }))
}

async fn work(case: &Case, state: Arc<dyn SharedState>, server: Option<&RedisServer>) -> Found {
    let look = Duration::from_secs(if case.quick { 1 } else { 10 });
    // What the first one needs belongs to none of them.
    let warm_up = Crowd::new("warm up", 10, Duration::from_millis(1), &state);
    warm_up.open().await;
    warm_up.add_to_all().await;

    let crowd = Crowd::new("paced", case.queues, case.every, &state);
    let (before, began) = (process::memory(), Instant::now());
    crowd.open().await;
    let opened = began.elapsed().as_secs_f64();
    let quiet = process::watch(look).await;
    let idle = (process::memory() - before) / f64::from(case.queues);

    let slow = Crowd::new("slow", case.queues, LONG, &state);
    let before = process::memory();
    slow.open().await;
    let began = Instant::now();
    slow.add_to_all().await;
    let burst = began.elapsed().as_secs_f64();
    slow.add_to_all().await;
    let patient = process::watch(look).await;
    let waiting = (process::memory() - before) / f64::from(case.queues);
    let descriptors = process::descriptors();
    let connections = server.map(connections);
    let began = Instant::now();
    let ended = slow.queues.shutdown(Duration::from_secs(60)).await;
    assert_eq!(ended.cancelled, case.queues as usize);
    let shut_down = began.elapsed().as_secs_f64();

    let failures = slow.failures.load(Relaxed) + crowd.failures.load(Relaxed);
    drop(slow);
    let pace = crowd.pace(case, server).await;
    let failures_at_pace = crowd.failures.load(Relaxed);
    crowd.queues.shutdown(Duration::from_secs(60)).await;
    let figures = Figures { opened, idle, waiting, quiet, patient, burst, shut_down };
    figures.with(descriptors, connections, [failures, failures_at_pace], pace)
}

struct Figures {
    opened: f64,
    idle: f64,
    waiting: f64,
    quiet: Doing,
    patient: Doing,
    burst: f64,
    shut_down: f64,
}

/// How well the pace was kept.
struct Pace {
    rate: f64,
    gaps: [f64; 4],
    cpu: f64,
    server_cpu: Option<f64>,
}

impl Figures {
    fn with(self, descriptors: usize, connections: Option<usize>, failures: [u64; 2], pace: Pace) -> Found {
        let Self { opened, idle, waiting, quiet, patient, burst, shut_down } = self;
        let Pace { rate, gaps, cpu, server_cpu } = pace;
        let [failures, all] = failures;
        let failures_at_pace = all.saturating_sub(failures);
        Found {
            opened,
            idle,
            waiting,
            quiet,
            patient,
            burst,
            shut_down,
            descriptors,
            connections,
            failures,
            failures_at_pace,
            rate,
            gaps,
            cpu,
            server_cpu,
        }
    }
}

impl Crowd {
    fn new(name: &'static str, count: u32, every: Duration, state: &Arc<dyn SharedState>) -> Self {
        let failures = Arc::new(AtomicU64::new(0));
        let told = failures.clone();
        let queues = IntervalQueues::builder(move |key| {
            let told = told.clone();
            let count = move |_: &_| {
                told.fetch_add(1, Relaxed);
            };
            IntervalQueue::builder(format!("{name}/{key}")).interval(every).on_error(count)
        });
        let queues = queues.keep_idle(LONG).max_kept(usize::MAX).open(state.clone());
        Self { queues, failures, count }
    }

    async fn get(&self, key: u32) -> IntervalQueue {
        loop {
            match self.queues.get(key.to_string()).await {
                Ok(queue) => return queue,
                Err(error) => {
                    if self.failures.fetch_add(1, Relaxed) == 0 {
                        eprintln!("{error}");
                    }
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Opens all, some at a time: what thousands of openings under way need at once is not what a queue
    /// costs.
    async fn open(&self) {
        for first in (0..self.count).step_by(TOGETHER) {
            let keys = (first..self.count).take(TOGETHER);
            join_all(keys.map(|key| self.get(key))).await;
        }
    }

    /// Adds a job to each at once, until all have their tickets.
    async fn add_to_all(&self) {
        let add = async |key| {
            let job = self.get(key).await.add(async {}).await.unwrap();
            job.ticket().await.unwrap();
        };
        unconstrained(join_all((0..self.count).map(add))).await;
    }

    /// Lets jobs start in all queues, which began at any time.
    async fn pace(&self, case: &Case, server: Option<&RedisServer>) -> Pace {
        let rounds = if case.quick { 3 } else { (10.0 / case.every.as_secs_f64()).ceil().max(3.0) as u32 };
        let starts = Arc::new(Mutex::new(Vec::with_capacity((self.count * (rounds + 4)) as usize)));
        let began = Instant::now();
        for key in 0..self.count {
            let (queue, starts) = (self.get(key).await, starts.clone());
            let begin = began + case.every.mul_f64(f64::from(key) / f64::from(self.count));
            tokio::spawn(async move {
                tokio::time::sleep_until(begin.into()).await;
                let add = async |_| {
                    let starts = starts.clone();
                    let job = async move { starts.lock().unwrap().push((key, Instant::now())) };
                    // One that is refused is missing from the pace.
                    let _ = queue.add(job).await;
                };
                unconstrained(join_all((0..rounds + 4).map(add))).await;
            });
        }
        // In the first round not all have begun.
        let from = began + case.every.mul_f64(1.5);
        let until = from + case.every * rounds;
        tokio::time::sleep_until(from.into()).await;
        let (cpu, server_before) = (process::cpu(), server.map(server_cpu));
        tokio::time::sleep_until(until.into()).await;
        let seconds = (until - from).as_secs_f64();
        let cpu = (process::cpu() - cpu) / seconds;
        let server_cpu =
            server.map(server_cpu).zip(server_before).map(|(after, before)| (after - before) / seconds);
        let starts = starts.lock().unwrap().clone();

        let mut last = HashMap::new();
        let mut gaps = Vec::new();
        let mut counted = 0_u32;
        for (key, at) in starts {
            let before = last.insert(key, at);
            if at >= from && at < until {
                counted += 1;
                gaps.extend(
                    before.map(|before: Instant| (at - before).as_secs_f64() / case.every.as_secs_f64()),
                );
            }
        }
        gaps.sort_by(f64::total_cmp);
        let at = |part: f64| gaps.get((part * gaps.len() as f64) as usize).copied().unwrap_or(f64::NAN);
        let most = gaps.last().copied().unwrap_or(f64::NAN);
        let rate = f64::from(counted) / f64::from(self.count * rounds);
        Pace { rate, gaps: [at(0.01), at(0.5), at(0.99), most], cpu, server_cpu }
    }
}

/// Those of others than this look.
fn connections(server: &RedisServer) -> usize {
    let clients = server.command(&["CLIENT", "LIST"]).concat();
    clients.lines().filter(|line| !line.contains("cmd=client")).count()
}

fn server_cpu(server: &RedisServer) -> f64 {
    let info = server.command(&["INFO", "CPU"]).concat();
    let used = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    used("used_cpu_sys:").unwrap_or(0.0) + used("used_cpu_user:").unwrap_or(0.0)
}
