//! What those rely on who come from other systems: the guide of the same name says what maps to what. Each runs on
//! every store, in real time.
//!
//! What is about whole programs is tested by the program's tests, what is about one store by that store's.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex, Weak},
};

use interval_queue_tasks::{
    Context, State, Task, TaskError, TaskId, TaskQueue, Worker, WorkerBuilder, contract::Counted,
};
use interval_queue_test_support::{PostgresServer, RedisServer};

use crate::common::stored;

/// Makes tests of a promise: on the stores that need no server, and on those that do.
macro_rules! everywhere {
    ($promise:ident) => {
        mod $promise {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn without_a_server() {
                super::super::without_a_server(super::$promise).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs redis-server and postgresql: scripts/test runs it"]
            async fn on_servers() {
                super::super::on_servers(stringify!($promise), super::$promise).await;
            }
        }
    };
}

mod a_calendar_server;
mod a_directory;
mod a_graph_engine;
mod a_job_server;

async fn open(url: &str, name: &str) -> TaskQueue {
    TaskQueue::builder(name).connect(url).await.unwrap()
}

/// Opens a queue on each store twice, as two processes do.
async fn without_a_server<F: Future<Output = ()>>(promise: impl Fn(TaskQueue, TaskQueue) -> F) {
    let memory = open("memory:", "test").await;
    promise(memory.clone(), memory).await;
    let folder = tempfile::tempdir().unwrap();
    let mut urls = Vec::new();
    if cfg!(feature = "sqlite") {
        urls.push(format!("sqlite:{}", folder.path().join("tasks.db").display()));
    }
    if cfg!(feature = "directory") {
        urls.push(format!("dir:{}", folder.path().join("tasks").display()));
    }
    for url in urls {
        promise(open(&url, "test").await, open(&url, "test").await).await;
    }
}

/// The same on servers, each in a queue of its own.
async fn on_servers<F: Future<Output = ()>>(name: &str, promise: impl Fn(TaskQueue, TaskQueue) -> F) {
    static SERVERS: Mutex<Weak<(RedisServer, PostgresServer)>> = Mutex::new(Weak::new());
    let servers = {
        let mut known = SERVERS.lock().unwrap();
        known.upgrade().unwrap_or_else(|| {
            let servers = Arc::new((RedisServer::start(), PostgresServer::start()));
            *known = Arc::downgrade(&servers);
            servers
        })
    };
    for url in [servers.0.url(), servers.1.url()] {
        promise(open(url, name).await, open(url, name).await).await;
    }
}

/// How often each number was run, in the order of the runs.
#[derive(Clone, Debug, Default)]
struct Runs(Arc<Mutex<Vec<u32>>>);

impl Runs {
    fn all(&self) -> Vec<u32> {
        self.0.lock().unwrap().clone()
    }

    fn times(&self) -> BTreeMap<u32, usize> {
        let mut times = BTreeMap::new();
        self.all().into_iter().for_each(|n| *times.entry(n).or_default() += 1);
        times
    }

    /// A worker of numbers, one at a time.
    fn worker(&self, queue: &TaskQueue) -> WorkerBuilder {
        let runs = self.clone();
        Worker::builder(queue).jobs(1).handler("n", move |_: Context, n: u32| {
            runs.0.lock().unwrap().push(n);
            async move { Ok::<_, TaskError>(n) }
        })
    }
}

fn number(n: u32) -> Task {
    Task::new("n", &n)
}

async fn add(queue: &TaskQueue, tasks: impl IntoIterator<Item = Task>) -> Vec<TaskId> {
    queue.add_all(tasks).await.unwrap().iter().map(|added| added.id()).collect()
}

async fn state(queue: &TaskQueue, id: TaskId) -> State {
    stored(queue, id).await.task.state
}

async fn counted(queue: &TaskQueue, what: Counted) -> u64 {
    let counts = queue.overview().await.unwrap().counts;
    counts.into_iter().filter(|(_, counted, _)| *counted == what).map(|(.., n)| n).sum()
}
