//! The clients of the checks: handles with a queue of their own, a clock, well-behaved workers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a check fails by panicking")]
#![allow(
    missing_docs,
    missing_debug_implementations,
    clippy::missing_panics_doc,
    clippy::missing_errors_doc,
    reason = "it is for checks alone"
)]

use std::{
    collections::hash_map::RandomState,
    fmt::Debug,
    hash::BuildHasher,
    process,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use interval_queue_conformance::ManualClock;
use interval_queue_contract::{Label, Micros, OnExisting, QueueName, StateError, StateErrorKind};
use interval_queue_task_contract::{
    Add, Added, Change, ChangeTasks, Command, Completion, Counted, Cursor, Edge, EdgeState, Json, Key, Kind,
    Leased, NewEdge, NewTask, OnFailure, Order, Outcome, Overview, Page, PolicyOverride, Read, Reply,
    Selector, SettingsChange, State, Step, Stepped, Stored, Task, TaskId, TaskStore, Token, Touched, Unique,
    Until, Verb, When, WorkerId,
};
use uuid::Uuid;

/// Two handles on one store, as two processes would have them, and its clock.
#[derive(Clone, Debug)]
pub struct Handles {
    /// The first handle.
    pub one: Arc<dyn TaskStore>,
    /// The second handle; may be a clone.
    pub other: Arc<dyn TaskStore>,
    /// The store's clock, if settable. `None`: checks that need one are left out.
    pub clock: Option<ManualClock>,
}

/// A lease that outlasts every check.
pub const LONG: Micros = Micros::from_millis(400_000);
/// The shortest lease.
pub const SHORT: Micros = Micros::from_millis(1_000);

/// A handle and the name of a queue.
#[derive(Clone)]
pub struct Client {
    store: Arc<dyn TaskStore>,
    queue: QueueName,
    clock: Option<ManualClock>,
}

/// A text unique across checks, processes and runs.
pub fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{count}-{:x}", process::id(), RandomState::new().hash_one(count))
}

/// A new id. Ids rise, as time-ordered ones do.
pub fn id() -> TaskId {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let count = u128::from(COUNT.fetch_add(1, Ordering::Relaxed));
    TaskId::new(Uuid::from_u128(count << 64 | 0x7000 << 48 | 0x8000))
}

/// A new id made of a name, in random order.
pub fn id_of_name() -> TaskId {
    TaskId::named(&unique())
}

/// A default task.
pub fn task() -> NewTask {
    NewTask::new(id(), Json::default())
}

/// A task with this key.
pub fn with_key(name: &str) -> NewTask {
    NewTask { key: Some(key(name)), ..task() }
}

/// A task with this unique name until it ends.
pub fn named(name: &str) -> NewTask {
    NewTask { unique: Some(Unique { name: key(name), until: Until::Ended }), ..task() }
}

/// A task that waits for `ups`.
pub fn behind(ups: impl IntoIterator<Item = TaskId>, on_failure: OnFailure) -> NewTask {
    let edges = ups.into_iter().map(|up| NewEdge { up, name: None, on_failure }).collect();
    NewTask { edges, ..task() }
}

pub fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

pub fn kind(text: &str) -> Kind {
    Kind::new(text).unwrap()
}

pub fn seconds(n: u64) -> Micros {
    Micros::from_millis(n * 1000)
}

pub fn in_seconds(n: u64) -> When {
    When::After(seconds(n))
}

/// This many attempts, one second apart.
pub fn attempts(max_attempts: u32) -> PolicyOverride {
    let (max_attempts, wait) = (Some(max_attempts), Some(seconds(1)));
    PolicyOverride { max_attempts, backoff: wait, max_backoff: wait, ..PolicyOverride::default() }
}

pub fn done() -> Outcome {
    Outcome::Done(Json::default())
}

/// The kind of an error that must have occurred.
pub fn refusal<T: Debug>(outcome: Result<T, StateError>) -> StateErrorKind {
    outcome.unwrap_err().kind()
}

/// Clients of both handles on a queue that does not exist yet.
pub fn unopened(handles: Handles) -> (Client, Client) {
    let queue = QueueName::new(format!("check-{}", unique())).unwrap();
    let client = |store| Client { store, queue: queue.clone(), clock: handles.clock.clone() };
    (client(handles.one), client(handles.other))
}

/// Clients of both handles on a new queue with these settings.
pub async fn opened(handles: Handles, settings: SettingsChange) -> (Client, Client) {
    let (one, other) = unopened(handles);
    one.change(Change::Open(settings, OnExisting::Replace)).await;
    (one, other)
}

/// Clients of both handles on a new queue with default settings.
pub async fn usual(handles: Handles) -> (Client, Client) {
    opened(handles, SettingsChange::default()).await
}

impl Client {
    pub fn queue(&self) -> &QueueName {
        &self.queue
    }

    pub fn store(&self) -> &Arc<dyn TaskStore> {
        &self.store
    }

    pub async fn apply(&self, command: Command) -> Result<Reply, StateError> {
        self.store.apply(&self.queue, command).await
    }

    pub async fn try_add(&self, tasks: Vec<NewTask>, age: Micros) -> Result<Vec<Added>, StateError> {
        // One producer for all checks, so that sequences are unique.
        static SEQUENCE: AtomicU32 = AtomicU32::new(0);
        let sequence = SEQUENCE.fetch_add(u32::try_from(tasks.len()).unwrap(), Ordering::Relaxed);
        match self.apply(Command::Add(Add { tasks: tasks.into(), sequence, age })).await? {
            Reply::Added(added) => Ok(added),
            other => panic!("an add was answered by {other:?}"),
        }
    }

    /// Adds new tasks.
    pub async fn add(&self, tasks: impl IntoIterator<Item = NewTask>) -> Vec<TaskId> {
        let tasks: Vec<_> = tasks.into_iter().collect();
        let ids: Vec<_> = tasks.iter().map(|task| task.id).collect();
        let added = self.try_add(tasks, Micros::ZERO).await.unwrap();
        assert_eq!(added, ids.iter().copied().map(Added::New).collect::<Vec<_>>());
        ids
    }

    pub async fn add_one(&self, task: NewTask) -> TaskId {
        self.add([task]).await[0]
    }

    pub async fn change(&self, change: Change) {
        let reply = self.apply(Command::Change(change.clone())).await.unwrap();
        assert!(matches!(reply, Reply::Changed(_)), "{change:?} was answered by {reply:?}");
    }

    pub async fn try_touch(&self, change: ChangeTasks) -> Result<Touched, StateError> {
        match self.apply(Command::Change(Change::Tasks(change))).await? {
            Reply::Touched(touched) => Ok(touched),
            other => panic!("a verb was answered by {other:?}"),
        }
    }

    /// Applies a verb and returns the changed ids.
    pub async fn touch(&self, verb: Verb, ids: impl IntoIterator<Item = TaskId>) -> Vec<TaskId> {
        self.try_touch(touch(verb, Selector::ids(ids))).await.unwrap().ids
    }

    pub async fn read(&self, read: Read) -> Reply {
        self.apply(Command::Read(read)).await.unwrap()
    }

    pub async fn overview(&self) -> Overview {
        match self.read(Read::Overview).await {
            Reply::Overview(overview) => *overview,
            other => panic!("a read was answered by {other:?}"),
        }
    }

    pub async fn find(&self, id: TaskId) -> Option<Stored> {
        match self.read(Read::Tasks(vec![id])).await {
            Reply::Tasks(mut tasks) if tasks.len() == 1 => tasks.remove(0),
            other => panic!("a read of one task was answered by {other:?}"),
        }
    }

    pub async fn stored(&self, id: TaskId) -> Stored {
        self.find(id).await.unwrap_or_else(|| panic!("task {id} is not stored"))
    }

    pub async fn row(&self, id: TaskId) -> Task {
        self.stored(id).await.task
    }

    pub async fn state(&self, id: TaskId) -> State {
        self.row(id).await.state
    }

    pub async fn states(&self, ids: &[TaskId]) -> Vec<State> {
        let mut states = Vec::new();
        for &id in ids {
            states.push(self.state(id).await);
        }
        states
    }

    /// The states of a task's edges to upstreams.
    pub async fn edges(&self, down: TaskId) -> Vec<EdgeState> {
        self.stored(down).await.upstreams.iter().map(|edge: &Edge| edge.state).collect()
    }

    pub async fn page(&self, selector: Selector, after: impl Into<Cursor>, limit: u32) -> Page {
        match self.read(Read::Page { selector, after: after.into(), limit, bodies: false }).await {
            Reply::Page(page) => page,
            other => panic!("a page was answered by {other:?}"),
        }
    }

    /// All tasks, by id.
    pub async fn rows(&self) -> Vec<Task> {
        let mut rows = Vec::new();
        let mut after = Some(Order::Oldest.start());
        while let Some(from) = after {
            let page = self.page(Selector::states(State::ALL), from, 1000).await;
            rows.extend(page.tasks.into_iter().map(|stored| stored.task));
            after = page.next;
        }
        rows.sort_by_key(|task| task.id);
        rows
    }

    /// The sum of a counter over all kinds.
    pub async fn counted(&self, what: Counted) -> u64 {
        let counts = self.overview().await.counts;
        counts.iter().filter(|(_, counted, _)| *counted == what).map(|(_, _, n)| n).sum()
    }

    /// A worker of these kinds, with a long lease.
    pub fn worker_of(&self, kinds: &[&str]) -> Worker {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let number = u128::from(COUNT.fetch_add(1, Ordering::Relaxed));
        let salt = u128::from(RandomState::new().hash_one(number));
        let mut kinds: Vec<Kind> = kinds.iter().map(|text| kind(text)).collect();
        kinds.sort();
        Worker {
            client: self.clone(),
            id: WorkerId::new(Uuid::from_u128(number << 64 | salt)),
            kinds,
            lease: LONG,
            sequence: 0,
            acknowledged: 0,
        }
    }

    /// A worker of the default kind.
    pub fn worker(&self) -> Worker {
        self.worker_of(&["default"])
    }

    /// The settable clock.
    pub fn clock(&self) -> &ManualClock {
        self.clock.as_ref().expect("this check needs a clock that can be set: see Handles::clock")
    }

    /// Lets time pass, in real time if the clock is not settable.
    pub async fn pass(&self, time: Duration) {
        match &self.clock {
            Some(clock) => clock.advance(time),
            None => tokio::time::sleep(time).await,
        }
    }

    /// Lets time pass in quarters of the witness's lease, which advances the lease clock.
    pub async fn live(&self, witness: &mut Worker, time: Duration) {
        let step = Duration::from_millis(witness.lease.to_duration().as_millis() as u64 / 4);
        let mut left = time;
        while !left.is_zero() {
            let now = left.min(step);
            self.pass(now).await;
            left -= now;
            witness.beat().await;
        }
    }
}

/// A change of selected tasks.
pub fn touch(verb: Verb, selector: Selector) -> ChangeTasks {
    ChangeTasks { selector, verb, after: None, watermark: None, limit: 1000, dry_run: false }
}

/// A worker that numbers its steps, as the contract demands.
#[derive(Clone)]
pub struct Worker {
    pub client: Client,
    pub id: WorkerId,
    pub kinds: Vec<Kind>,
    pub lease: Micros,
    pub sequence: u64,
    pub acknowledged: u64,
}

impl Worker {
    /// Sets the lease.
    pub fn with_lease(self, lease: Micros) -> Self {
        Self { lease, ..self }
    }

    /// The next `Step`: completes and requests nothing. The first one resyncs without leases.
    pub fn step(&mut self) -> Step {
        self.sequence += 1;
        let first = self.sequence == 1;
        Step {
            sequence: self.sequence,
            acknowledged: self.acknowledged,
            label: Label::new(format!("worker {}", self.id)).unwrap(),
            held: first.then(Vec::new),
            ..Step::first(self.id, self.kinds.clone(), self.lease)
        }
    }

    pub async fn try_send(&mut self, step: Step) -> Result<Stepped, StateError> {
        let sequence = step.sequence;
        match self.client.apply(Command::Step(step)).await? {
            Reply::Stepped(stepped) => {
                self.acknowledged = sequence;
                Ok(stepped)
            }
            other => panic!("a step was answered by {other:?}"),
        }
    }

    pub async fn send(&mut self, step: Step) -> Stepped {
        self.try_send(step).await.unwrap()
    }

    /// Renews the lease.
    pub async fn beat(&mut self) -> Stepped {
        let step = self.step();
        let stepped = self.send(step).await;
        assert!(!stepped.resync, "worker {} was heard of in time, and is held for dead", self.id);
        stepped
    }

    /// Sends steps until no maintenance is due; returns their number.
    pub async fn tidy(&mut self) -> usize {
        let mut steps = 1;
        while self.beat().await.more {
            steps += 1;
            assert!(steps < 10_000, "housekeeping never comes to an end");
        }
        steps
    }

    /// Resyncs without held leases, even after a lost lease, then [tidies](Self::tidy).
    pub async fn hello(&mut self) {
        let step = Step { held: Some(Vec::new()), ..self.step() };
        self.send(step).await;
        self.tidy().await;
    }

    /// Leases up to `want` tasks.
    pub async fn lease(&mut self, want: u32) -> Vec<Leased> {
        let step = Step { want, ..self.step() };
        self.send(step).await.leased
    }

    /// Leases up to `want` tasks and returns their ids.
    pub async fn take(&mut self, want: u32) -> Vec<TaskId> {
        self.lease(want).await.iter().map(|leased| leased.task.id).collect()
    }

    /// Leases one task, which must exist.
    pub async fn one(&mut self) -> (TaskId, Token) {
        let leased = self.lease(1).await;
        assert_eq!(leased.len(), 1, "there is no task to lease");
        (leased[0].task.id, leased[0].task.token)
    }

    /// Reports the outcome of a run.
    pub async fn complete(&mut self, (id, token): (TaskId, Token), outcome: Outcome) -> Stepped {
        let complete = vec![Completion { id, token, outcome }];
        let step = Step { complete, ..self.step() };
        self.send(step).await
    }

    /// As [`complete`](Self::complete); the token must be in force.
    pub async fn end(&mut self, run: (TaskId, Token), outcome: Outcome) {
        let stepped = self.complete(run, outcome).await;
        assert_eq!(stepped.lost, [], "the token {} was in force", run.1);
    }

    /// Leases a task and completes it.
    pub async fn run(&mut self) -> TaskId {
        let run = self.one().await;
        self.end(run, done()).await;
        run.0
    }
}
