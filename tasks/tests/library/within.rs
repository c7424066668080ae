//! Handlers that end their runs within transactions of their own, on a database.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use interval_queue::{QueueName, StateError, StateErrorKind, contract::Changes};
use interval_queue_memory::MemoryState;
use interval_queue_sqlite::SqliteTasks;
use interval_queue_tasks::{
    Completed, Context, Error, ErrorKind, Policy, State, Task, TaskError, TaskId, TaskQueue, TaskStore,
    Totals, Worker, WorkerBuilder,
    contract::{Command, Reply},
};
use rusqlite::Connection;
use tokio::task::spawn_blocking;

use crate::common::{ms, stored};

/// A database with effects of tasks, and the tasks.
#[derive(Clone)]
struct Shop {
    path: PathBuf,
    tasks: SqliteTasks,
    queue: TaskQueue,
    /// How often a handler was called.
    calls: Arc<AtomicU32>,
    _folder: Arc<tempfile::TempDir>,
}

impl Shop {
    async fn new() -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let path = folder.path().join("shop.db");
        let database = Connection::open(&path).unwrap();
        database.execute_batch("CREATE TABLE effect (n INTEGER NOT NULL)").unwrap();
        let tasks = SqliteTasks::open(&path).await.unwrap();
        let queue = Self::open(tasks.clone()).await;
        Self { path, tasks, queue, calls: Arc::default(), _folder: folder }
    }

    async fn open(tasks: impl TaskStore) -> TaskQueue {
        let policy = Policy::default().backoff(Duration::ZERO, Duration::ZERO);
        let builder = TaskQueue::builder("test").policy(policy);
        builder.open_parts(Arc::new(tasks), Arc::new(MemoryState::new())).await.unwrap()
    }

    fn worker(&self) -> WorkerBuilder<Self> {
        Worker::builder(&self.queue).state(self.clone())
    }

    async fn add(&self) -> TaskId {
        self.queue.add(Task::new("count", &7)).await.unwrap().id()
    }

    fn effects(&self) -> u32 {
        let database = Connection::open(&self.path).unwrap();
        database.query_row("SELECT count(*) FROM effect", [], |row| row.get(0)).unwrap()
    }

    /// Stores the effect and the end of the run, and commits that unless `end` says otherwise.
    fn count(&self, context: &Context<Self>, end: impl FnOnce() -> End) -> Result<Completed, TaskError> {
        let mut database = Connection::open(&self.path)?;
        let transaction = database.transaction()?;
        transaction.execute("INSERT INTO effect VALUES (1)", [])?;
        let (queue, worker) = (self.queue.name(), context.worker());
        let completed =
            self.tasks.complete_within(&transaction, queue, worker, &context.done(&"counted")?)?;
        match end() {
            End::Commits => transaction.commit()?,
            End::RollsBack => transaction.rollback()?,
        }
        Ok(completed)
    }

    fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }
}

enum End {
    Commits,
    RollsBack,
}

fn called(context: &Context<Shop>) -> u32 {
    context.state().calls.fetch_add(1, Ordering::Relaxed) + 1
}

async fn finish(worker: WorkerBuilder<Shop>) -> Totals {
    worker.build().unwrap().run_until_empty().await.unwrap()
}

#[tokio::test]
async fn a_completed_run_is_not_reported_again() {
    let shop = Shop::new().await;
    let ids = [shop.add().await, shop.add().await];
    let handler = async |context: Context<Shop>, _: u32| {
        called(&context);
        context.state().count(&context, || End::Commits)
    };
    let totals = finish(shop.worker().handler("count", handler)).await;
    assert_eq!((totals.done, totals.failed, totals.released), (2, 0, 0));
    assert_eq!((shop.effects(), shop.calls()), (2, 2));
    for id in ids {
        assert_eq!(shop.queue.wait::<String>(id).await.unwrap(), "counted");
        let task = stored(&shop.queue, id).await.task;
        assert_eq!((task.state, task.failures, task.token.attempt), (State::Done, 0, 1));
    }
}

#[tokio::test]
async fn a_transaction_that_is_rolled_back_leaves_an_ordinary_run() {
    let shop = Shop::new().await;
    let id = shop.add().await;
    let handler = async |context: Context<Shop>, n: u32| {
        let _completed = context.state().count(&context, || End::RollsBack)?;
        Ok::<_, TaskError>(n)
    };
    let totals = finish(shop.worker().handler("count", handler)).await;
    assert_eq!((totals.done, shop.effects()), (1, 0));
    assert_eq!(shop.queue.wait::<u32>(id).await.unwrap(), 7, "the result is what the handler returned");
}

#[tokio::test]
async fn a_panic_before_or_after_the_commit_has_the_effect_once() {
    let shop = Shop::new().await;
    let id = shop.add().await;
    let handler = async |context: Context<Shop>, _: u32| {
        let call = called(&context);
        let completed = context.state().count(&context, || {
            assert!(call > 1, "before the commit");
            End::Commits
        })?;
        assert!(call > 2, "after the commit");
        Ok::<_, TaskError>(completed)
    };
    let totals = finish(shop.worker().handler("count", handler)).await;
    assert_eq!((shop.effects(), shop.calls()), (1, 2));
    // What the worker says of the second run comes too late.
    assert_eq!((totals.done, totals.failed), (0, 2));
    let task = stored(&shop.queue, id).await.task;
    assert_eq!((task.state, task.failures), (State::Done, 1));
}

#[tokio::test]
async fn an_end_that_is_not_committed_is_found_out() {
    let shop = Shop::new().await;
    let id = shop.add().await;
    let handler = async |context: Context<Shop>, _: u32| {
        let is_first = called(&context) == 1;
        context.state().count(&context, || if is_first { End::RollsBack } else { End::Commits })
    };
    let worker = shop.worker().lease(ms(1_000)).handler("count", handler);
    finish(worker).await;
    assert_eq!((shop.effects(), shop.calls()), (1, 2));
    let task = stored(&shop.queue, id).await.task;
    assert_eq!((task.state, task.failures, task.token.attempt), (State::Done, 0, 2));
}

#[tokio::test]
async fn the_end_of_another_run_is_an_error() {
    let shop = Shop::new().await;
    let ids = [shop.add().await, shop.add().await];
    let other = Arc::new(std::sync::Mutex::new(None));
    let handler = move |context: Context<Shop>, _: u32| {
        let other = other.clone();
        async move {
            let mut other = other.lock().unwrap();
            match *other {
                None => {
                    let completed = context.state().count(&context, || End::Commits)?;
                    *other = Some(completed);
                    Ok::<_, TaskError>(completed)
                }
                Some(other) if context.attempt() == 1 => Ok(other),
                Some(_) => context.state().count(&context, || End::Commits),
            }
        }
    };
    finish(shop.worker().jobs(1).handler("count", handler)).await;
    assert_eq!(shop.effects(), 2);
    let mut failures = Vec::new();
    for id in ids {
        let task = stored(&shop.queue, id).await.task;
        assert_eq!(task.state, State::Done);
        failures.extend(task.history.into_iter().filter_map(|attempt| attempt.error));
    }
    assert!(failures.len() == 1 && failures[0].contains("the end of another run"), "{failures:?}");
}

/// The transaction holds the database, so that no step comes through, and the worker ends the run by its own clock. The
/// thread goes on, and what it commits counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_after_the_lease_counts_if_nobody_has_the_task() {
    let shop = Shop::new().await;
    let id = shop.add().await;
    let handler = async |context: Context<Shop>, _: u32| {
        called(&context);
        let holds = spawn_blocking(move || {
            context.state().count(&context, || {
                std::thread::sleep(ms(2_500));
                End::Commits
            })
        });
        holds.await?
    };
    let worker = shop.worker().lease(ms(1_000)).handler("count", handler);
    finish(worker).await;
    assert_eq!((shop.effects(), shop.calls()), (1, 1));
    let task = stored(&shop.queue, id).await.task;
    assert_eq!((task.state, task.failures), (State::Done, 0));
}

/// A database that a worker does not reach.
#[derive(Clone, Debug)]
struct OutOfReach {
    tasks: SqliteTasks,
    now: Arc<AtomicBool>,
}

#[async_trait]
impl TaskStore for OutOfReach {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        if self.now.load(Ordering::Relaxed) {
            return Err(StateError::new(StateErrorKind::Unreachable, "the store is down"));
        }
        self.tasks.apply(queue, command).await
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        self.tasks.queues().await
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.tasks.changes(queue).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_task_another_worker_has_done_is_refused() {
    let shop = Shop::new().await;
    let id = shop.add().await;
    let store = OutOfReach { tasks: shop.tasks.clone(), now: Arc::default() };
    let late = Shop { queue: Shop::open(store.clone()).await, ..shop.clone() };
    let refused = Arc::new(std::sync::Mutex::new(None));
    let (begun, begins) = tokio::sync::oneshot::channel();
    let begun = Arc::new(std::sync::Mutex::new(Some(begun)));
    let (down, refusal) = (store.now.clone(), refused.clone());
    let stalls = move |context: Context<Shop>, _: u32| {
        let (down, refusal, begun) = (down.clone(), refusal.clone(), begun.clone());
        async move {
            // Its worker is not heard of any more, and another one does the task meanwhile.
            let thread = spawn_blocking(move || {
                down.store(true, Ordering::Relaxed);
                let _ = begun.lock().unwrap().take().unwrap().send(());
                while context.state().effects() == 0 {
                    std::thread::sleep(ms(20));
                }
                let completed = context.state().count(&context, || End::Commits);
                *refusal.lock().unwrap() = Some(completed.as_ref().map_err(ToString::to_string).copied());
                completed
            });
            thread.await?
        }
    };
    let worker = late.worker().lease(ms(1_000)).handler("count", stalls).build().unwrap();
    let stop = worker.handle();
    let late = tokio::spawn(worker.run());
    begins.await.unwrap();
    let heir = async |context: Context<Shop>, _: u32| {
        called(&context);
        context.state().count(&context, || End::Commits)
    };
    let heir = shop.worker().lease(ms(1_000)).handler("count", heir);
    finish(heir).await;
    while refused.lock().unwrap().is_none() {
        tokio::time::sleep(ms(20)).await;
    }
    let refused = refused.lock().unwrap().take().unwrap();
    assert!(refused.as_ref().is_err_and(|error| error.contains("another run's")), "{refused:?}");
    assert_eq!((shop.effects(), shop.calls()), (1, 1));
    assert_eq!(stored(&shop.queue, id).await.task.state, State::Done);
    store.now.store(false, Ordering::Relaxed);
    stop.stop();
    late.await.unwrap().unwrap();
}

#[tokio::test]
async fn prepared_tasks_are_added_once_or_rejected() {
    let shop = Shop::new().await;
    let (first, second) = (Task::new("count", &1), Task::new("count", &2));
    let second = second.input("first", first.id()).max_attempts(3);
    let mut database = Connection::open(&shop.path).unwrap();
    for _ in 0..2 {
        let prepared = shop.queue.prepare([first.clone(), second.clone()]).unwrap();
        let transaction = database.transaction().unwrap();
        shop.tasks.add_within(&transaction, shop.queue.name(), prepared).unwrap();
        transaction.commit().unwrap();
    }
    let task = stored(&shop.queue, second.id()).await.task;
    assert_eq!(task.policy.max_attempts, Some(3));
    let refused: Result<_, Error> = shop.queue.prepare([Task::new("count", &1).weight(0)]);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    let many = (0..20_001).map(|n| Task::new("count", &n));
    assert_eq!(shop.queue.prepare(many).unwrap_err().kind(), ErrorKind::Invalid);
}
