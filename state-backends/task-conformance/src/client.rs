//! What the checks speak to a store with: a queue of their own, a clock, and workers that behave.
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
    Add, Added, Change, ChangeTasks, Command, Completion, Counted, Edge, EdgeState, Json, Key, Kind, Leased,
    NewEdge, NewTask, OnFailure, Outcome, Overview, Page, PolicyOverride, Read, Reply, Selector,
    SettingsChange, State, Step, Stepped, Stored, Task, TaskId, TaskStore, Token, Touched, Unique, Until,
    Verb, When, WorkerId,
};
use uuid::Uuid;

/// Two handles on one store, as two processes would have them, and its clock.
#[derive(Clone, Debug)]
pub struct Handles {
    /// The one.
    pub one: Arc<dyn TaskStore>,
    /// The other; for a store that one handle can be copied of, a copy.
    pub other: Arc<dyn TaskStore>,
    /// The clock of the store, if a test can set it. Without, checks in which hours pass cannot be made.
    pub clock: Option<ManualClock>,
}

/// A lease that does not end unless a check wants it to.
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

/// A text that no other check, process or run uses.
pub fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{count}-{:x}", process::id(), RandomState::new().hash_one(count))
}

/// The ids of this process rise with each call, as time-ordered ones do.
pub fn id() -> TaskId {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let count = u128::from(COUNT.fetch_add(1, Ordering::Relaxed));
    TaskId::new(Uuid::from_u128(count << 64 | 0x7000 << 48 | 0x8000))
}

/// An id that is made of a name: its place among others says nothing.
pub fn id_of_name() -> TaskId {
    TaskId::named(&unique())
}

/// A task with nothing special.
pub fn task() -> NewTask {
    NewTask::new(id(), Json::default())
}

/// One of this key.
pub fn keyed(name: &str) -> NewTask {
    NewTask { key: Some(key(name)), ..task() }
}

/// One with this unique name until its end.
pub fn named(name: &str) -> NewTask {
    NewTask { unique: Some(Unique { name: key(name), until: Until::Ended }), ..task() }
}

/// One that waits for these.
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

/// So many attempts, and one second in between.
pub fn attempts(max_attempts: u32) -> PolicyOverride {
    let (max_attempts, wait) = (Some(max_attempts), Some(seconds(1)));
    PolicyOverride { max_attempts, backoff: wait, max_backoff: wait, ..PolicyOverride::default() }
}

pub fn done() -> Outcome {
    Outcome::Done(Json::default())
}

/// The kind of the error that must have come.
pub fn refusal<T: Debug>(outcome: Result<T, StateError>) -> StateErrorKind {
    outcome.unwrap_err().kind()
}

/// Both handles on one queue that is not there yet.
pub fn unopened(handles: Handles) -> (Client, Client) {
    let queue = QueueName::new(format!("check-{}", unique())).unwrap();
    let client = |store| Client { store, queue: queue.clone(), clock: handles.clock.clone() };
    (client(handles.one), client(handles.other))
}

/// Both handles on a new queue with these settings.
pub async fn opened(handles: Handles, settings: SettingsChange) -> (Client, Client) {
    let (one, other) = unopened(handles);
    one.change(Change::Open(settings, OnExisting::Replace)).await;
    (one, other)
}

/// Both handles on a new queue with the usual settings.
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
        // One producer for all checks.
        static SEQUENCE: AtomicU32 = AtomicU32::new(0);
        let sequence = SEQUENCE.fetch_add(u32::try_from(tasks.len()).unwrap(), Ordering::Relaxed);
        match self.apply(Command::Add(Add { tasks: tasks.into(), sequence, age })).await? {
            Reply::Added(added) => Ok(added),
            other => panic!("an add was answered by {other:?}"),
        }
    }

    /// Adds them, and gives their ids.
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

    /// Does something with these tasks, and gives those that were touched.
    pub async fn touch(&self, verb: Verb, ids: impl IntoIterator<Item = TaskId>) -> Vec<TaskId> {
        self.try_touch(touch(verb, Selector::ids(ids))).await.unwrap().ids
    }

    pub async fn read(&self, read: Read) -> Reply {
        self.apply(Command::Read(read)).await.unwrap()
    }

    pub async fn overview(&self) -> Overview {
        match self.read(Read::Overview).await {
            Reply::Overview(overview) => *overview,
            other => panic!("a look was answered by {other:?}"),
        }
    }

    pub async fn find(&self, id: TaskId) -> Option<Stored> {
        match self.read(Read::Tasks(vec![id])).await {
            Reply::Tasks(mut tasks) if tasks.len() == 1 => tasks.remove(0),
            other => panic!("a look at one task was answered by {other:?}"),
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

    /// What was told of the upstreams of a task.
    pub async fn edges(&self, down: TaskId) -> Vec<EdgeState> {
        self.stored(down).await.upstreams.iter().map(|edge: &Edge| edge.state).collect()
    }

    pub async fn page(&self, selector: Selector, after: Option<TaskId>, limit: u32) -> Page {
        match self.read(Read::Page { selector, after, limit, bodies: false }).await {
            Reply::Page(page) => page,
            other => panic!("a page was answered by {other:?}"),
        }
    }

    /// All rows there are, by id.
    pub async fn rows(&self) -> Vec<Task> {
        let mut rows = Vec::new();
        let mut after = None;
        loop {
            let page = self.page(Selector::states(State::ALL), after, 1000).await;
            rows.extend(page.tasks.into_iter().map(|stored| stored.task));
            after = page.next;
            if after.is_none() {
                return rows;
            }
        }
    }

    /// How many are counted so, of all kinds.
    pub async fn counted(&self, what: Counted) -> u64 {
        let counts = self.overview().await.counts;
        counts.iter().filter(|(_, counted, _)| *counted == what).map(|(_, _, n)| n).sum()
    }

    /// A worker that serves these kinds, with a long lease.
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

    /// A worker of the usual kind.
    pub fn worker(&self) -> Worker {
        self.worker_of(&["default"])
    }

    /// The clock, if it can be set.
    pub fn clock(&self) -> &ManualClock {
        self.clock.as_ref().expect("this check needs a clock that can be set: see Handles::clock")
    }

    /// Lets time pass. While the clock is the world's, only little.
    pub async fn pass(&self, time: Duration) {
        match &self.clock {
            Some(clock) => clock.advance(time),
            None => tokio::time::sleep(time).await,
        }
    }

    /// Lets much time pass, in which a worker is heard of, so that the clock of leases goes on as well.
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

/// What is done with selected tasks.
pub fn touch(verb: Verb, selector: Selector) -> ChangeTasks {
    ChangeTasks { selector, verb, after: None, watermark: None, limit: 1000, dry_run: false }
}

/// A worker that numbers its steps, as it should.
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
    /// The same with this lease.
    pub fn with_lease(self, lease: Micros) -> Self {
        Self { lease, ..self }
    }

    /// Its next step, which completes and wants nothing. The first one says that it holds nothing.
    pub fn step(&mut self) -> Step {
        self.sequence += 1;
        let first = self.sequence == 1;
        Step {
            sequence: self.sequence,
            acknowledged: self.acknowledged,
            label: Label::new(format!("worker {}", self.id)).unwrap(),
            holding: first.then(Vec::new),
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

    /// Says only that it lives.
    pub async fn beat(&mut self) -> Stepped {
        let step = self.step();
        let stepped = self.send(step).await;
        assert!(!stepped.restate, "worker {} was heard of in time, and is held for dead", self.id);
        stepped
    }

    /// Steps until housekeeping has nothing left to do. Gives how many steps that were.
    pub async fn tidy(&mut self) -> usize {
        let mut steps = 1;
        while self.beat().await.more {
            steps += 1;
            assert!(steps < 10_000, "housekeeping never comes to an end");
        }
        steps
    }

    /// Says that it holds nothing, also after a silence that has ended its lease, and is [tidy](Self::tidy).
    pub async fn hello(&mut self) {
        let step = Step { holding: Some(Vec::new()), ..self.step() };
        self.send(step).await;
        self.tidy().await;
    }

    /// Leases so many at most.
    pub async fn lease(&mut self, want: u32) -> Vec<Leased> {
        let step = Step { want, ..self.step() };
        self.send(step).await.leased
    }

    /// Leases so many at most, and gives their ids.
    pub async fn take(&mut self, want: u32) -> Vec<TaskId> {
        self.lease(want).await.iter().map(|leased| leased.task.id).collect()
    }

    /// Leases one, which must be there.
    pub async fn one(&mut self) -> (TaskId, Token) {
        let leased = self.lease(1).await;
        assert_eq!(leased.len(), 1, "there is no task to lease");
        (leased[0].task.id, leased[0].task.token)
    }

    /// Says how a run ended.
    pub async fn complete(&mut self, (id, token): (TaskId, Token), outcome: Outcome) -> Stepped {
        let complete = vec![Completion { id, token, outcome }];
        let step = Step { complete, ..self.step() };
        self.send(step).await
    }

    /// The same, which must be obeyed.
    pub async fn end(&mut self, run: (TaskId, Token), outcome: Outcome) {
        let stepped = self.complete(run, outcome).await;
        assert_eq!(stepped.lost, [], "the token {} was in force", run.1);
    }

    /// Leases one, and does it.
    pub async fn run(&mut self) -> TaskId {
        let run = self.one().await;
        self.end(run, done()).await;
        run.0
    }
}
