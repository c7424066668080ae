//! The clients of the checks: handles with a queue of their own, and well-behaved shards.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a check fails by panicking")]

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use interval_queue_contract::{
    Ask, Change, Changed, Command, Label, MaxRunning, Memory, Micros, OnExisting, QueueName, Rates, Record,
    Reply, ShardId, SharedState, Snapshot, StateError, StateErrorKind, Step, Stepped, Take, Taken, Ticket,
};
use tokio::task::JoinSet;

/// Two handles on one store, as two processes would have them. The second may be a clone.
pub type Handles = (Arc<dyn SharedState>, Arc<dyn SharedState>);

/// A lease that outlasts every check.
pub(crate) const LONG: Duration = Duration::from_secs(600);

#[derive(Clone)]
pub(crate) struct Client {
    state: Arc<dyn SharedState>,
    queue: QueueName,
}

/// A text unique across checks, processes and runs.
pub(crate) fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{count}-{:x}", process::id(), RandomState::new().hash_one(count))
}

/// Clients of both handles on a queue that does not exist yet.
pub(crate) fn unopened(handles: Handles) -> (Client, Client) {
    let queue = QueueName::new(format!("check-{}", unique())).unwrap();
    let (one, other) = handles;
    (Client::new(one, queue.clone()), Client::new(other, queue))
}

/// Clients of both handles on a new queue with this interval.
pub(crate) async fn opened(handles: Handles, interval: Duration) -> (Client, Client) {
    let (one, other) = unopened(handles);
    one.change(open(Some(interval), OnExisting::Replace)).await.unwrap();
    (one, other)
}

/// Opens with `interval` (`None`: as stored) and the stored limit of running jobs.
pub(crate) fn open(interval: Option<Duration>, on_existing: OnExisting) -> Change {
    let rates = interval.map(|interval| Rates::every(Micros::from_duration(interval)));
    Change::Open { rates, max_running: MaxRunning::Keep, on_existing }
}

/// Requests the slot of a job of weight 1.
pub(crate) fn ask(ticket: u64) -> Ask {
    let ticket = Ticket::new(ticket);
    Ask { ticket, weight: 1 }
}

/// Takes tickets without requesting slots.
pub(crate) fn take(request: u64, count: u32) -> Take {
    let weights = Vec::new();
    Take { request, count, weights }
}

pub(crate) fn kind<T: std::fmt::Debug>(outcome: Result<T, StateError>) -> StateErrorKind {
    outcome.unwrap_err().kind()
}

/// Runs `count` futures concurrently on alternating handles.
pub(crate) async fn together<T: Send + 'static, F: Future<Output = Vec<T>> + Send + 'static>(
    clients: [&Client; 2],
    count: u64,
    work: impl Fn(Client, u64) -> F,
) -> Vec<T> {
    let work = (0..count).map(|n| work(clients[n as usize % 2].clone(), n));
    work.collect::<JoinSet<_>>().join_all().await.into_iter().flatten().collect()
}

impl Client {
    pub(crate) fn new(state: Arc<dyn SharedState>, queue: QueueName) -> Self {
        Self { state, queue }
    }

    pub(crate) fn queue(&self) -> &QueueName {
        &self.queue
    }

    pub(crate) fn state(&self) -> &Arc<dyn SharedState> {
        &self.state
    }

    pub(crate) async fn apply(&self, command: Command) -> Result<Reply, StateError> {
        self.state.apply(&self.queue, command).await
    }

    pub(crate) async fn change(&self, change: Change) -> Result<Changed, StateError> {
        self.apply(Command::Change(change, Memory::default())).await?.changed()
    }

    pub(crate) async fn read(&self) -> Option<Snapshot> {
        self.apply(Command::Read).await.unwrap().read().unwrap()
    }

    pub(crate) async fn snapshot(&self) -> Snapshot {
        self.read().await.expect("the queue was opened")
    }

    /// The stored record without its time, which advances by itself.
    pub(crate) async fn record(&self) -> Record {
        Record { seen_at: Micros::ZERO, ..self.snapshot().await.record }
    }

    pub(crate) fn shard(&self, name: &str) -> Shard {
        Shard {
            client: self.clone(),
            id: ShardId::new(name).unwrap(),
            sequence: 0,
            memory: Memory::default(),
        }
    }
}

pub(crate) struct Shard {
    pub(crate) client: Client,
    pub(crate) id: ShardId,
    pub(crate) sequence: u64,
    pub(crate) memory: Memory,
}

impl Shard {
    /// The next `Step`: takes and requests nothing, nothing waits; a long lease, no lead.
    pub(crate) fn step(&mut self) -> Step {
        self.sequence += 1;
        let label = Label::new(format!("label of {}", self.id)).unwrap();
        let lease = Micros::from_duration(LONG);
        Step { label, ..Step::idle(self.id.clone(), self.sequence, self.memory, lease) }
    }

    pub(crate) async fn send(&mut self, step: Step) -> Result<Stepped, StateError> {
        let stepped = self.client.apply(Command::Step(step)).await?.stepped()?;
        self.memory.learn(stepped.memory);
        Ok(stepped)
    }

    /// Takes tickets. The shard has no other work afterwards.
    pub(crate) async fn take(&mut self, request: u64, count: u32) -> Taken {
        let take = Some(take(request, count));
        let step = Step { take, ..self.step() };
        self.send(step).await.unwrap().taken.expect("tickets were wanted")
    }

    /// Requests the slot of the shard's only ticket, `lead` ahead.
    pub(crate) async fn ask(&mut self, ticket: Ticket, lead: Duration) -> Stepped {
        let step = Step { lead: Micros::from_duration(lead), ask: vec![ask(ticket.get())], ..self.step() };
        self.send(step).await.unwrap()
    }

    /// Takes one ticket and starts it now, so that the next slot is an interval away.
    pub(crate) async fn start_one(&mut self) -> Stepped {
        let weights = vec![1];
        let take = Some(Take { weights, ..take(u64::MAX >> 11, 1) });
        let step = Step { take, ..self.step() };
        let stepped = self.send(step).await.unwrap();
        assert_eq!(stepped.grants.len(), 1, "an idle queue grants at once: {stepped:?}");
        stepped
    }
}
