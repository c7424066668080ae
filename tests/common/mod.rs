//! What the tests of the promises share: a state that notes every slot it grants, and shards that note every
//! start.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "each test file uses a part"
)]

use std::{
    ops::Range,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use interval_queue::{
    IntervalQueue, JobHandle, SharedState, StateError, Ticket,
    contract::{Changes, Command, Micros, QueueName, Reply},
};
use interval_queue_conformance::Faulty;
use interval_queue_memory::MemoryState;
use tokio::time::Instant;

/// Milliseconds.
pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A slot that the state granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    pub at: Micros,
    pub ticket: Ticket,
    pub weight: u32,
}

/// A state that notes every slot it grants, whether or not the reply arrives.
#[derive(Clone, Debug)]
pub struct Noting {
    inner: Arc<dyn SharedState>,
    slots: Arc<Mutex<Vec<Slot>>>,
}

impl Noting {
    pub fn new(inner: impl SharedState) -> Self {
        Self { inner: Arc::new(inner), slots: Arc::default() }
    }

    /// All slots so far, in the order of time. A slot granted again after a lost reply counts once.
    pub fn slots(&self) -> Vec<Slot> {
        let mut slots = self.slots.lock().unwrap().clone();
        slots.sort();
        slots.dedup();
        slots
    }

    /// Asserts that no two slots are closer than the interval times the weight of the former.
    pub fn assert_spaced(&self, interval: Duration) {
        let interval = Micros::from_duration(interval);
        for pair in self.slots().windows(2) {
            let least = interval * u64::from(pair[0].weight);
            assert!(pair[1].at - pair[0].at >= least, "slots closer than {least:?}: {pair:?}");
        }
    }
}

#[async_trait]
impl SharedState for Noting {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let asked = command.clone();
        let reply = self.inner.apply(queue, command).await?;
        if let (Command::Step(step), Reply::Stepped(stepped)) = (asked, &reply) {
            let weight =
                |ticket| step.ask.iter().find(|ask| ask.ticket == ticket).map_or(1, |ask| ask.weight);
            let taken_weight = |ticket: Ticket| {
                let first = stepped.taken.filter(|taken| taken.first <= ticket)?.first;
                step.take.as_ref()?.weights.get(usize::try_from(ticket.behind(first)).ok()?).copied()
            };
            self.slots.lock().unwrap().extend(stepped.grants.iter().map(|grant| Slot {
                at: grant.slot,
                ticket: grant.ticket,
                weight: taken_weight(grant.ticket).unwrap_or_else(|| weight(grant.ticket)),
            }));
        }
        Ok(reply)
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.inner.changes(queue).await
    }
}

/// A job that started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The number the test gave it.
    pub job: usize,
    /// Since the beginning of the test.
    pub at: Duration,
}

/// Notes which job started when.
#[derive(Clone, Debug)]
pub struct Starts {
    began: Instant,
    noted: Arc<Mutex<Vec<Start>>>,
}

impl Starts {
    #[allow(clippy::disallowed_methods, reason = "the tests' own clock")]
    pub fn new() -> Self {
        Self { began: Instant::now(), noted: Arc::default() }
    }

    /// A job that notes its start and does nothing else.
    pub fn job(&self, job: usize) -> impl Future<Output = ()> + Send + 'static {
        let starts = self.clone();
        async move { starts.note(job) }
    }

    /// Notes the start of a job.
    pub fn note(&self, job: usize) {
        let at = self.began.elapsed();
        self.noted.lock().unwrap().push(Start { job, at });
    }

    /// All starts so far, in the order in which they happened.
    pub fn all(&self) -> Vec<Start> {
        self.noted.lock().unwrap().clone()
    }

    /// The numbers of the jobs in the order in which they started.
    pub fn jobs(&self) -> Vec<usize> {
        self.all().iter().map(|start| start.job).collect()
    }

    /// Asserts that these jobs have started, each of them once.
    pub fn assert_each_once(&self, jobs: Range<usize>) {
        let mut started = self.jobs();
        started.sort_unstable();
        assert_eq!(started, jobs.collect::<Vec<_>>());
    }

    /// The distances between starts.
    pub fn gaps(&self) -> Vec<Duration> {
        self.all().windows(2).map(|pair| pair[1].at - pair[0].at).collect()
    }
}

/// `count` shards of one queue on one state.
pub async fn shards(
    count: usize,
    state: &(impl SharedState + Clone),
    interval: Duration,
) -> Vec<IntervalQueue> {
    let mut shards = Vec::new();
    for number in 0..count {
        let builder = IntervalQueue::builder("test").interval(interval).label(format!("shard {number}"));
        // Jobs have their tickets at once, so that a test knows what waits.
        shards.push(builder.linger(Duration::ZERO).open(state.clone()).await.unwrap());
    }
    shards
}

/// The first of [`shards`].
pub async fn shard(state: &(impl SharedState + Clone), interval: Duration) -> IntervalQueue {
    shards(1, state, interval).await.remove(0)
}

/// A shard on a new state.
pub async fn one(interval: Duration) -> IntervalQueue {
    shard(&memory().1, interval).await
}

/// A new state, a faulty way to it, and a shard at its end.
pub async fn far(interval: Duration) -> (Noting, Faulty, IntervalQueue) {
    let (state, wire) = wired();
    let queue = shard(&wire, interval).await;
    (state, wire, queue)
}

/// A new state, so many [`shards`] on it, and what starts from now on.
pub async fn begun(count: usize, interval: Duration) -> (Noting, Vec<IntervalQueue>, Starts) {
    let (_, state) = memory();
    let shards = shards(count, &state, interval).await;
    (state, shards, Starts::new())
}

/// One shard of the queue that [`shards`] opens, which lingers.
pub async fn open(state: impl SharedState, interval: Duration) -> IntervalQueue {
    IntervalQueue::builder("test").interval(interval).open(state).await.unwrap()
}

/// The name that [`shards`] gives its queue.
pub fn queue() -> QueueName {
    QueueName::new("test").unwrap()
}

/// Adds jobs 0 to `count` − 1, to one shard after the other.
pub async fn add_in_turn(shards: &[IntervalQueue], starts: &Starts, count: usize) -> Vec<JobHandle<()>> {
    let mut handles = Vec::new();
    for job in 0..count {
        handles.push(with_ticket(&shards[job % shards.len()], starts.job(job)).await);
    }
    handles
}

/// Adds a job and waits for its ticket.
pub async fn with_ticket<T: Send + 'static>(
    queue: &IntervalQueue,
    job: impl Future<Output = T> + Send + 'static,
) -> JobHandle<T> {
    let handle = queue.add(job).await.unwrap();
    handle.ticket().await.unwrap();
    handle
}

/// The tickets of jobs.
pub async fn tickets<'a, T: 'a>(handles: impl IntoIterator<Item = &'a JobHandle<T>>) -> Vec<u64> {
    let mut tickets = Vec::new();
    for handle in handles {
        tickets.push(handle.ticket().await.unwrap().get());
    }
    tickets
}

/// Adds a job and waits for it in a task of its own.
pub fn spawned(
    queue: &IntervalQueue,
    job: impl Future<Output = ()> + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    let queue = queue.clone();
    tokio::spawn(async move { queue.add(job).await.unwrap().await.unwrap() })
}

/// Adds these jobs, each to any of the shards.
pub async fn add_at_random(
    shards: &[IntervalQueue],
    starts: &Starts,
    jobs: Range<usize>,
    random: &mut Random,
) -> Vec<JobHandle<()>> {
    let mut handles = Vec::new();
    for job in jobs {
        let shard = &shards[random.below(shards.len() as u64) as usize];
        handles.push(with_ticket(shard, starts.job(job)).await);
    }
    handles
}

/// Waits for every job and asserts that it ran.
pub async fn all_done<T>(handles: impl IntoIterator<Item = JobHandle<T>>) -> Vec<T> {
    let mut results = Vec::new();
    for handle in handles {
        results.push(handle.await.unwrap());
    }
    results
}

/// A memory whose slots are noted.
pub fn memory() -> (MemoryState, Noting) {
    let memory = MemoryState::new();
    (memory.clone(), Noting::new(memory))
}

/// A memory whose slots are noted, and a faulty way to it.
pub fn wired() -> (Noting, Faulty) {
    let (_, state) = memory();
    (state.clone(), Faulty::new(state))
}

/// A repeatable stream of numbers: splitmix64, from Steele, Lea and Flood, "Fast splittable pseudorandom
/// number generators", 2014.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True once in `times` times.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}
