//! On a database, with threads, in real time.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use interval_queue::IntervalQueue;
use interval_queue_tasks::{Context, State, Task, TaskError, TaskQueue, Worker};
use tokio::time::sleep;

use crate::{
    common::{ms, stored},
    failures::two_hundred_of_many,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workers_share_a_database_and_each_task_is_done_once() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("tasks.db").display());
    let open = || TaskQueue::builder("test").connect(&url);
    let (here, there) = (open().await.unwrap(), open().await.unwrap());
    let firsts: Vec<_> = (0..60).map(|n| Task::new("first", &n).key(format!("key {}", n % 7))).collect();
    let seconds: Vec<_> =
        firsts.iter().map(|first| Task::new("second", &()).input("first", first.id())).collect();
    let ids: Vec<_> = seconds.iter().map(Task::id).collect();
    here.add_all(firsts.into_iter().chain(seconds)).await.unwrap();

    let runs = Arc::new(Mutex::new(BTreeSet::new()));
    let worker = |queue: &TaskQueue| {
        let (runs, busy) = (runs.clone(), runs.clone());
        Worker::builder(queue)
            .jobs(4)
            .handler("first", move |context: Context, n: u32| {
                assert!(runs.lock().unwrap().insert((context.id(), context.token())), "one token, two runs");
                async move {
                    sleep(ms(u64::from(n % 5))).await;
                    Ok::<_, TaskError>(n)
                }
            })
            .handler("second", move |context: Context, (): ()| {
                busy.lock().unwrap().insert((context.id(), context.token()));
                async move {
                    let inputs = context.inputs().await?;
                    Ok::<_, TaskError>(inputs.get::<u32>("first")? + 1)
                }
            })
            .build()
            .unwrap()
    };
    let (one, other) = (worker(&here), worker(&there));
    let (one, other) = tokio::join!(one.run_until_empty(), other.run_until_empty());
    assert_eq!(one.unwrap().done + other.unwrap().done, 120);
    for (n, id) in ids.into_iter().enumerate() {
        assert_eq!(there.wait::<u32>(id).await.unwrap(), n as u32 + 1);
        let task = stored(&here, id).await.task;
        assert_eq!((task.state, task.failures, task.token.attempt), (State::Done, 0, 1));
    }
    assert_eq!(runs.lock().unwrap().len(), 120);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_of_fifty_thousand_are_retried_by_their_error() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}?durability=relaxed", folder.path().join("tasks.db").display());
    two_hundred_of_many(TaskQueue::builder("test").connect(&url).await.unwrap()).await;
}

#[tokio::test]
async fn a_store_opens_both_queues_and_is_whole_when_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tasks.db");
    let sqlite = interval_queue_sqlite::SqliteStore::builder(&path).open().await.unwrap();
    let store = interval_queue_tasks::Store::from(sqlite.clone());
    let pace = IntervalQueue::builder("test").interval(ms(1)).open(&store).await.unwrap();
    let queue = TaskQueue::builder("test").open(sqlite).await.unwrap();
    assert_eq!(queue.rate_limit().await.unwrap().unwrap().interval(), pace.interval());
    let id = queue.add(Task::new("a", &1)).await.unwrap().id();
    let log = folder.path().join("tasks.db-wal");
    assert!(log.exists(), "what is stored is in the log");
    store.close().await.unwrap();
    assert!(!log.exists());
    let copy = folder.path().join("copy.db");
    std::fs::copy(&path, &copy).unwrap();
    let copied = TaskQueue::builder("test").connect(&format!("sqlite:{}", copy.display())).await.unwrap();
    assert_eq!(stored(&copied, id).await.task.state, State::Ready);
    // It is opened again.
    queue.add(Task::new("a", &2)).await.unwrap();
}
