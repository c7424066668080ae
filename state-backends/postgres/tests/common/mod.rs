//! A server that the tests of a file share, places on it, and what tests say to any state.
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    clippy::unwrap_used,
    reason = "no test needs all of it, and each fails by panicking"
)]

use std::{
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use interval_queue_postgres::{
    PostgresState,
    deadpool_postgres::{Config, Pool, PoolConfig, Runtime},
};
use interval_queue_test_support::PostgresServer;
pub use interval_queue_test_support::{Shard, commands::*};
use tokio_postgres::NoTls;

/// Short, so that a test of time-outs is.
pub const TIMEOUT: Duration = Duration::from_millis(800);
/// So long that no test ever waits for it.
pub const LONG: Duration = Duration::from_secs(120);
/// The table of a state that was given no schema.
pub const TABLE: &str = "interval_queue.interval_queue";

/// A server that runs as long as a test uses it.
pub type Shared = Arc<PostgresServer>;

/// The server for tests that do it no harm: one for all that run at the same time.
pub fn server() -> Shared {
    static SERVER: Mutex<Weak<PostgresServer>> = Mutex::new(Weak::new());
    let mut known = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    known.upgrade().unwrap_or_else(|| {
        let server = Arc::new(PostgresServer::start());
        *known = Arc::downgrade(&server);
        server
    })
}

/// The name of a schema that nobody else uses.
pub fn someplace() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("place {}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// A pool as an application has one.
pub fn pool(url: &str, connections: usize) -> Pool {
    let mut config = Config::new();
    config.url = Some(url.to_owned());
    config.pool = Some(PoolConfig::new(connections));
    config.create_pool(Some(Runtime::Tokio1), NoTls).unwrap()
}

pub async fn connect(url: &str) -> PostgresState {
    PostgresState::builder(url).timeout(TIMEOUT).connect().await.unwrap()
}

/// The same for tests of something else than time-outs.
pub async fn connect_patiently(url: &str) -> PostgresState {
    PostgresState::builder(url).timeout(LONG).connect().await.unwrap()
}

/// The address of a proxy before the server.
pub fn through(port: u16) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/postgres")
}

/// The address of another database.
pub fn database(server: &PostgresServer, name: &str) -> String {
    format!("postgres://postgres@127.0.0.1:{}/{name}", server.port())
}

/// Somebody else's connection.
pub async fn session(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A transaction that has the row of the queue `mail`, until it ends.
pub async fn lock_row(session: &tokio_postgres::Client) {
    let lock = format!("BEGIN; SELECT 1 FROM {TABLE} WHERE name = 'mail' FOR UPDATE");
    session.batch_execute(&lock).await.unwrap();
}

/// How many connections of ours the server has, of which this is true.
pub fn count(server: &PostgresServer, condition: &str) -> usize {
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'interval-queue' AND ({condition})"
    );
    server.psql(&sql)[0].parse().unwrap()
}

/// Waits until a connection of ours is so.
pub async fn until_one(server: &PostgresServer, condition: &str) {
    until_some(server, condition, |count| count > 0).await;
}

/// Waits, about half a minute at most, until so many connections of ours are so.
pub async fn until_some(server: &PostgresServer, condition: &str, enough: impl Fn(usize) -> bool) {
    for _ in 0..1_000 {
        if enough(count(server, condition)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} connections of which {condition}", count(server, condition));
}

/// The host's clock.
#[allow(clippy::disallowed_methods, reason = "what passes on the host is what is tested")]
pub fn clock() -> Instant {
    Instant::now()
}

/// Takes one ticket after the other, trying again as a shard does, until it has so many.
pub async fn tickets(state: PostgresState, id: &'static str, count: usize) -> Vec<u64> {
    let (mut shard, mut taken) = (Shard::new(id), Vec::new());
    while taken.len() < count {
        match shard.step(&state, 1).await {
            Ok(stepped) => taken.push(stepped.taken.unwrap().first.get()),
            Err(error) => {
                assert!(error.is_retryable(), "{error:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        shard.waiting.clear();
    }
    taken
}

/// Many tasks take tickets; meanwhile something happens; nobody gets a ticket that another one has.
pub async fn tasks_take_tickets(state: &PostgresState, each: usize, meanwhile: impl Future<Output = ()>) {
    const IDS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let tasks = IDS.map(|id| tokio::spawn(tickets(state.clone(), id, each)));
    meanwhile.await;
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.unwrap());
    }
    all.sort_unstable();
    let number = all.len();
    all.dedup();
    assert_eq!(all.len(), number, "a ticket was given twice");
}
