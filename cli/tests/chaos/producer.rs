//! A producer in a scene: it adds batches of tasks of all sorts, so that some always wait, and logs each batch before
//! and after. It begins with the batches of which a producer before it did not hear what became of them.

use std::{
    collections::HashMap,
    env,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use interval_queue_tasks::{Added, Error, Selector, State, Task, TaskId, TaskQueue, Verb, contract::Counted};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::json;

use crate::{
    log::{LOG, Log, Made, Pen, Said},
    process::ms,
    role,
    worker::KIND,
};

/// So many tasks run, or wait for nothing but a worker and their key.
const BACKLOG: u64 = 30;
const READY: [Counted; 4] = [
    Counted::Now(State::Added),
    Counted::Now(State::Blocked),
    Counted::Now(State::Ready),
    Counted::Now(State::Leased),
];
/// How many run at once.
pub(crate) const MAX_RUNNING: u32 = 7;
/// Of so many keys.
const KEYS: u32 = 4;

/// Adds until it is told to stop, and then until the test is gone does nothing.
pub(crate) async fn produce(pen: Pen) {
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    role::end_with_the_test(move |_| told.store(true, Ordering::Relaxed));
    let random = StdRng::seed_from_u64(env::var(role::SEED).unwrap().parse().unwrap());
    let mut producer = Producer { pen, queue: None, random };
    for batch in producer.left_by_others() {
        producer.add(batch).await;
    }
    producer.pen.write("ready");
    while !stop.load(Ordering::Relaxed) {
        if producer.has_room().await {
            let batch = producer.batch();
            producer.add(batch).await;
        }
        tokio::time::sleep(ms(20)).await;
    }
    producer.pen.write("stopped");
    std::future::pending().await
}

struct Producer {
    pen: Pen,
    queue: Option<TaskQueue>,
    random: StdRng,
}

impl Producer {
    /// Opens the queue, which may have to be made.
    async fn queue(&mut self) -> Result<TaskQueue, Error> {
        if let Some(queue) = &self.queue {
            return Ok(queue.clone());
        }
        let (url, name) = role::place();
        let queue = TaskQueue::builder(name).max_running(MAX_RUNNING).connect(&url).await?;
        self.queue = Some(queue.clone());
        Ok(queue)
    }

    async fn trouble(&mut self, error: Error) {
        self.pen.write(format_args!("trouble {error}"));
        tokio::time::sleep(ms(20)).await;
    }

    async fn has_room(&mut self) -> bool {
        let looked = async { self.queue().await?.overview().await }.await;
        match looked {
            Ok(overview) => {
                let ready = overview.counts.iter().filter(|(_, counted, _)| READY.contains(counted));
                ready.map(|(_, _, count)| count).sum::<u64>() < BACKLOG
            }
            Err(error) => {
                // Opened once more, it is made again if it is gone.
                self.queue = None;
                self.trouble(error).await;
                false
            }
        }
    }

    fn batch(&mut self) -> Vec<Made> {
        let mut batch: Vec<Made> = Vec::new();
        // Some are so large that it takes a while to store them.
        let size = if self.random.random_bool(0.1) { 40 } else { self.random.random_range(1..=8) };
        for _ in 0..size {
            let id = Task::new(KIND, &0).id();
            let key = self.random.random_range(0..KEYS * 2);
            let up = batch.last().map(|made| made.id).filter(|_| self.random.random_bool(0.2));
            let key = Some(format!("key{key}")).filter(|_| key < KEYS);
            batch.push(Made { id, key, up, once: self.random.random_bool(0.05) });
        }
        batch
    }

    /// The tasks of a batch: what was logged of them is so, all else is as it comes.
    fn tasks(&mut self, batch: &[Made]) -> Vec<Task> {
        let mut tasks = Vec::new();
        let longest = if batch.len() > 8 { 30 } else { 250 };
        for made in batch {
            let fails = if self.random.random_bool(0.1) { 2 } else { 0 };
            // Some take longer than a lease.
            let lasts =
                if batch.len() <= 8 && self.random.random_bool(0.15) { 500..2_500 } else { 5..longest };
            let payload = json!({ "ms": self.random.random_range(lasts), "fails": fails });
            let attempts = if made.once { 1 } else { 10_000 };
            let mut task =
                Task::new(KIND, &payload).with_id(made.id).max_attempts(attempts).backoff(ms(10), ms(100));
            // The most urgent ones wait for nothing but a place.
            task = match &made.key {
                Some(key) => task.key(key).priority(self.random.random_range(-1..=0)),
                None => task.priority(1),
            };
            if let Some(up) = made.up {
                task = task.after(up);
            }
            tasks.push(task);
        }
        tasks
    }

    /// Adds a batch, however long that takes.
    async fn add(&mut self, batch: Vec<Made>) {
        let tasks = self.tasks(&batch);
        let words: Vec<_> = batch.iter().map(ToString::to_string).collect();
        self.pen.write(format_args!("adding {}", words.join(" ")));
        let added = loop {
            let added = async { self.queue().await?.add_all(tasks.clone()).await }.await;
            match added {
                Ok(added) => break added,
                Err(error) => {
                    self.queue = None;
                    self.trouble(error).await;
                }
            }
        };
        let again = added.iter().filter(|added| matches!(added, Added::Again(_))).count();
        let ids: Vec<_> = added.iter().map(|added| added.id().to_string()).collect();
        self.pen.write(format_args!("added {again} {}", ids.join(" ")));
        if self.random.random_bool(0.1) {
            let some = self.random.random_range(0..added.len());
            self.cancel(added[some].id()).await;
        }
    }

    /// Cancels a task, wherever it is.
    async fn cancel(&mut self, id: TaskId) {
        self.pen.write(format_args!("cancelling {id}"));
        let cancelled =
            async { self.queue().await?.change(&Selector::ids([id]), Verb::Cancel, false).await }.await;
        if let Err(error) = cancelled {
            self.trouble(error).await;
        }
    }

    /// Batches that were to be added and of which nobody heard that they were.
    fn left_by_others(&self) -> Vec<Vec<Made>> {
        let mut log = Log::at(PathBuf::from(env::var_os(LOG).unwrap()));
        log.refresh();
        let mut left: HashMap<TaskId, Vec<Made>> = HashMap::new();
        for line in log.lines {
            match line.said {
                Said::Adding(batch) => drop(left.insert(batch[0].id, batch)),
                Said::Added(ids, _) => drop(left.remove(&ids[0])),
                _ => {}
            }
        }
        left.into_values().collect()
    }
}
