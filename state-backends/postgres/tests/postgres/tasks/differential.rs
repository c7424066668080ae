//! The tables of a server give the rules what those of the memory give.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use async_trait::async_trait;
use interval_queue_conformance::ManualClock;
use interval_queue_contract::{Changes, QueueName, StateError};
use interval_queue_postgres::{Durability, PostgresStore, PostgresTasks};
use interval_queue_task_conformance::{
    differential::{compare, compare_with_ends},
    fuzzer::{Target, Within},
};
use interval_queue_task_contract::{
    Add, Added, Command, Completed, Completion, NewTask, OnConflict, Reply, TaskStore, WorkerId,
};
use tokio::sync::Mutex;

use super::support::{functions_by_a_test_clock, set_test_clock, stage, stage_with_low_marks};
use crate::common::{LONG, Shared, server, session, someplace};

async fn compare_all(seeds: impl IntoIterator<Item = u64>, stage: impl AsyncFn() -> Target) {
    let mut leased = 0;
    for seed in seeds {
        leased += compare(seed, 250, &stage().await).await.unwrap();
    }
    assert!(leased > 75, "{leased} tasks were leased");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn random_commands_do_the_same_as_in_the_memory() {
    compare_all(1..=4, stage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn random_commands_agree_with_low_water_marks() {
    compare_all(5..=8, stage_with_low_marks).await;
}

/// A store that adds and completes by the functions in SQL, in transactions of an application.
#[derive(Debug)]
struct ByFunctions {
    tasks: PostgresTasks,
    application: Mutex<tokio_postgres::Client>,
    clock: ManualClock,
    schema: String,
    added: AtomicU32,
    _server: Shared,
}

impl ByFunctions {
    async fn new() -> Arc<Self> {
        let (server, schema, clock) = (server(), someplace(), ManualClock::default());
        let builder = PostgresStore::builder(server.url()).schema(&schema).durability(Durability::Relaxed);
        let reading = clock.clone();
        let store = builder.timeout(LONG).connect().await.unwrap();
        let tasks = PostgresTasks::with_clock(&store, move || reading.now()).await.unwrap();
        let nothing = Command::Add(Add::default());
        tasks.apply(&QueueName::new("elsewhere").unwrap(), nothing).await.unwrap();
        let application = session(server.url()).await;
        application.batch_execute(&functions_by_a_test_clock(&schema)).await.unwrap();
        let (application, added) = (Mutex::new(application), AtomicU32::new(0));
        Arc::new(Self { tasks, application, clock, schema, added, _server: server })
    }

    async fn add(&self, queue: &QueueName, add: Add) -> Result<Vec<Added>, StateError> {
        let mut application = self.application.lock().await;
        application.batch_execute(&set_test_clock(&self.schema, self.clock.now().get())).await.unwrap();
        let transaction = application.transaction().await.unwrap();
        let added = self.tasks.add_within(&transaction, queue, add).await;
        // Also after an error, which leaves the transaction as it was.
        transaction.commit().await.unwrap();
        let new = added.iter().flatten().filter(|added| matches!(added, Added::New(_))).count();
        self.added.fetch_add(u32::try_from(new).unwrap(), Ordering::Relaxed);
        added
    }
}

#[async_trait]
impl TaskStore for ByFunctions {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let replaces = |task: &NewTask| task.unique.is_some() && task.on_conflict == OnConflict::Replace;
        match command {
            Command::Add(add) if !add.tasks.iter().any(replaces) => {
                self.add(queue, add).await.map(Reply::Added)
            }
            other => self.tasks.apply(queue, other).await,
        }
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        self.tasks.queues().await
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.tasks.changes(queue).await
    }
}

#[async_trait]
impl Within for ByFunctions {
    async fn end(
        &self,
        queue: &QueueName,
        worker: WorkerId,
        completion: &Completion,
    ) -> Result<Completed, StateError> {
        let mut application = self.application.lock().await;
        application.batch_execute(&set_test_clock(&self.schema, self.clock.now().get())).await.unwrap();
        let transaction = application.transaction().await.unwrap();
        let completed = self.tasks.complete_within(&transaction, queue, worker, completion).await;
        transaction.commit().await.unwrap();
        completed
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn random_calls_of_functions_do_the_same_as_the_rules() {
    let (mut leased, mut added) = (0, 0);
    for seed in 1..=4 {
        let store = ByFunctions::new().await;
        let target = Target { store: store.clone(), clock: store.clock.clone(), copies: None };
        leased += compare_with_ends(seed, 250, &target, Some(&*store)).await.unwrap();
        added += store.added.load(Ordering::Relaxed);
    }
    assert!(leased > 50 && added > 100, "{leased} tasks were leased, {added} added by functions");
}
