//! A server that the tests of a file share, places on it, and what tests say to any state.

use std::sync::{
    Arc, Mutex, PoisonError, Weak,
    atomic::{AtomicU32, Ordering},
};
pub(crate) use std::{
    error::Error,
    time::{Duration, Instant},
};

pub(crate) use futures::StreamExt;
pub(crate) use interval_queue_contract::{
    Change, Changes, Command, Memory, QueueName, SharedState, StateError,
    StateErrorKind::{
        self, Damaged, Denied, Foreign, Invalid, NewerVersion, NotFound, TimedOut, Unreachable, Unsupported,
    },
};
use interval_queue_postgres::deadpool_postgres::{Config, Pool, PoolConfig, Runtime};
pub(crate) use interval_queue_postgres::{Builder, PostgresState, PostgresStore};
pub(crate) use interval_queue_test_support::{PostgresServer, Proxy, Shard, commands::*, stranger};
use tokio_postgres::NoTls;

/// Short, so that a test of time-outs is. A host may stall longer: only commands that may fail have it.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(800);
/// Longer than a busy host stalls: for tests that wait for it once at most.
pub(crate) const STALL_TIMEOUT: Duration = Duration::from_secs(10);
/// So long that no test ever waits for it.
pub(crate) const LONG: Duration = Duration::from_secs(120);
/// The table of a state that was given no schema.
pub(crate) const TABLE: &str = "interval_queue.interval_queue";

/// A server that runs as long as a test uses it.
pub(crate) type Shared = Arc<PostgresServer>;

/// The server for tests that do it no harm: one for all that run at the same time.
pub(crate) fn server() -> Shared {
    static SERVER: Mutex<Weak<PostgresServer>> = Mutex::new(Weak::new());
    let mut known = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    known.upgrade().unwrap_or_else(|| {
        let server = Arc::new(PostgresServer::start());
        *known = Arc::downgrade(&server);
        server
    })
}

/// The name of a schema that nobody else uses.
pub(crate) fn someplace() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("place {}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// A pool as an application has one.
pub(crate) fn pool(url: &str, connections: usize) -> Pool {
    let mut config = Config::new();
    config.url = Some(url.to_owned());
    config.pool = Some(PoolConfig::new(connections));
    config.create_pool(Some(Runtime::Tokio1), NoTls).unwrap()
}

/// The queues on the store that this connects to.
pub(crate) async fn on(builder: Builder) -> Result<PostgresState, StateError> {
    PostgresState::on(&builder.connect().await?).await
}

/// For tests that wait for a time-out once at most.
pub(crate) async fn connect(url: &str) -> PostgresState {
    on(PostgresStore::builder(url).timeout(STALL_TIMEOUT)).await.unwrap()
}

/// For tests that wait for no time-out.
pub(crate) async fn connect_patiently(url: &str) -> PostgresState {
    on(PostgresStore::builder(url).timeout(LONG)).await.unwrap()
}

/// For tests that wait for time-outs. To connect may take longer than one.
pub(crate) async fn connect_impatiently(url: &str) -> PostgresState {
    for _ in 0..30 {
        match on(PostgresStore::builder(url).timeout(TIMEOUT)).await {
            Err(error) if error.is_retryable() => continue,
            connected => return connected.unwrap(),
        }
    }
    panic!("{url} did not answer in time");
}

/// A server with a queue `mail`.
pub(crate) async fn opened() -> (PostgresServer, PostgresState) {
    let server = PostgresServer::start();
    let state = connect_patiently(server.url()).await;
    open(&state).await.unwrap();
    (server, state)
}

/// The same for tests of time-outs.
pub(crate) async fn opened_impatiently() -> (PostgresServer, PostgresState) {
    let (server, _) = opened().await;
    let state = connect_impatiently(server.url()).await;
    (server, state)
}

pub(crate) async fn pause(state: &PostgresState) -> Result<(), StateError> {
    change(state, Change::Pause, Memory::default()).await.map(drop)
}

/// The first of the tickets that it takes.
pub(crate) async fn takes(shard: &mut Shard, state: &PostgresState, count: u32) -> u64 {
    shard.step(state, count).await.unwrap().taken.unwrap().first.get()
}

/// The address of a proxy before the server.
pub(crate) fn through(port: u16) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/postgres")
}

/// The address of another database.
pub(crate) fn database(server: &PostgresServer, name: &str) -> String {
    format!("postgres://postgres@127.0.0.1:{}/{name}", server.port())
}

/// Somebody else's connection.
pub(crate) async fn session(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A transaction that has the row of the queue `mail`, until it ends.
pub(crate) async fn lock_row(session: &tokio_postgres::Client) {
    let lock = format!("BEGIN; SELECT 1 FROM {TABLE} WHERE name = 'mail' FOR UPDATE");
    session.batch_execute(&lock).await.unwrap();
}

/// How many connections of ours the server has, of which this is true.
pub(crate) fn count(server: &PostgresServer, condition: &str) -> usize {
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'interval-queue' AND ({condition})"
    );
    server.psql(&sql)[0].parse().unwrap()
}

/// Waits, about half a minute at most, until so many connections of ours are so.
pub(crate) async fn until_some(server: &PostgresServer, condition: &str, enough: impl Fn(usize) -> bool) {
    for _ in 0..1_000 {
        if enough(count(server, condition)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} connections of which {condition}", count(server, condition));
}

/// Takes one ticket after the other, trying again as a shard does, until it has so many.
pub(crate) async fn tickets(state: PostgresState, id: &'static str, count: usize) -> Vec<u64> {
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
pub(crate) async fn tasks_take_tickets(
    state: &PostgresState,
    each: usize,
    meanwhile: impl Future<Output = ()>,
) {
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

/// All schemas and tables, with what is in ours.
pub(crate) fn everything(server: &PostgresServer) -> Vec<String> {
    server.psql(
        "SELECT nspname, relname, relkind FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid \
         WHERE nspname NOT LIKE 'pg_%' AND nspname <> 'information_schema' ORDER BY 1, 2",
    )
}

pub(crate) async fn notified(changes: &mut Changes) {
    let notified = tokio::time::timeout(LONG, changes.next()).await;
    notified.expect("nobody told").expect("the stream ended");
}
