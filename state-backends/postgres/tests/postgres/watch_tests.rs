//! Watching: one connection for all queues of a state, only while somebody watches, and an end when it ends.

use tokio::time::timeout;

use crate::common::*;

const LISTENS: &str = "query LIKE 'LISTEN%'";

/// What has come so far is taken, and then the stream ends.
async fn ends(changes: &mut Changes) {
    while timeout(LONG, changes.next()).await.expect("no end").is_some() {}
}

async fn pause_queue(state: &PostgresState, queue: &QueueName) -> Result<(), StateError> {
    state.apply(queue, Command::Change(Change::Pause, Memory::default())).await.map(drop)
}

fn numbered(n: usize) -> QueueName {
    QueueName::new(format!("queue {n}")).unwrap()
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_thousand_queues_are_watched_over_one_connection() {
    let server = PostgresServer::start();
    let (state, other) = (connect_patiently(server.url()).await, connect_patiently(server.url()).await);
    assert_eq!(count(&server, LISTENS), 0, "nobody watches yet");
    let mut watched = Vec::new();
    for n in 0..1_000 {
        watched.push(state.changes(&numbered(n)).await.unwrap());
    }
    assert_eq!(count(&server, LISTENS), 1);
    for n in [0, 1, 500, 999] {
        other.apply(&numbered(n), opening(5)).await.unwrap();
        pause_queue(&other, &numbered(n)).await.unwrap();
        notified(&mut watched[n]).await;
    }
    // Nobody else was told.
    assert!(timeout(Duration::from_millis(200), watched[2].next()).await.is_err());
    // One of two watchers of a queue leaves, and then all but one queue.
    drop(state.changes(&numbered(0)).await.unwrap());
    watched.truncate(1);
    while timeout(Duration::from_millis(200), watched[0].next()).await.is_ok() {}
    pause_queue(&other, &numbered(0)).await.unwrap();
    notified(&mut watched[0]).await;
    watched.clear();
    until_some(&server, LISTENS, |count| count == 0).await;
    // And again.
    let _changes = state.changes(&mail()).await.unwrap();
    assert_eq!(count(&server, LISTENS), 1);
}

#[test]
#[ignore = "needs postgresql: scripts/test runs it"]
fn a_stream_ends_with_the_runtime_of_its_connection() {
    let server = PostgresServer::start();
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (first, second) = (runtime(), runtime());
    let state = second.block_on(connect_patiently(server.url()));
    let of_first = first.block_on(state.changes(&mail())).unwrap();
    let mut of_second = second.block_on(state.changes(&mail())).unwrap();
    drop(first);
    second.block_on(async {
        ends(&mut of_second).await;
        let mut again = state.changes(&mail()).await.unwrap();
        open(&state).await.unwrap();
        pause(&state).await.unwrap();
        notified(&mut again).await;
    });
    drop(of_first);
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_stream_ends_with_its_connection_and_a_new_one_works() {
    let (mut server, state) = opened().await;
    for harm in ["end", "restart", "stop"] {
        let mut changes = state.changes(&mail()).await.unwrap();
        let mut more = state.changes(&numbered(1)).await.unwrap();
        pause(&state).await.unwrap();
        notified(&mut changes).await;
        match harm {
            "end" => {
                server
                    .psql(&format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {LISTENS}"));
            }
            "restart" => server.restart(),
            _ => {
                server.stop();
                ends(&mut changes).await;
                assert_eq!(kind(state.changes(&mail()).await.map(drop)), Unreachable);
                server.start_again();
            }
        }
        ends(&mut changes).await;
        ends(&mut more).await;
        let mut changes = state.changes(&mail()).await.unwrap();
        pause(&state).await.unwrap();
        notified(&mut changes).await;
        drop(changes);
    }
    until_some(&server, LISTENS, |count| count == 0).await;
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn watchers_of_a_silent_server_all_fail_in_time() {
    let server = PostgresServer::start();
    let proxy = Proxy::before(server.port());
    let state = connect_impatiently(&through(proxy.port())).await;
    proxy.fall_silent();
    let begun = Instant::now();
    let names: Vec<_> = (0..100).map(numbered).collect();
    let all = futures::future::join_all(names.iter().map(|name| state.changes(name))).await;
    // One after the other they would take more than a minute.
    assert!(begun.elapsed() < TIMEOUT * 30, "{:?}", begun.elapsed());
    assert!(all.into_iter().all(|one| kind(one.map(drop)) == Unreachable));
    proxy.speak();
    // A busy server may be late once more.
    let mut changes = loop {
        if let Ok(changes) = state.changes(&mail()).await {
            break changes;
        }
    };
    until_it_works(&state).await;
    notified(&mut changes).await;
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn watching_that_is_dropped_as_it_begins_leaves_no_connection() {
    let server = PostgresServer::start();
    let state = connect_patiently(server.url()).await;
    for micros in (0..10_000).step_by(200) {
        let _ = timeout(Duration::from_micros(micros), state.changes(&mail())).await;
    }
    until_some(&server, "state <> 'idle' OR query NOT LIKE 'COMMIT%'", |count| count == 0).await;
    let mut changes = state.changes(&mail()).await.unwrap();
    open(&state).await.unwrap();
    notified(&mut changes).await;
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_pool_that_is_shared_cannot_be_listened_to() {
    let server = server();
    let store = PostgresStore::over(pool(server.url(), 2)).schema(someplace());
    let watched = on(store).await.unwrap().changes(&mail()).await.map(drop);
    crate::addresses::refused(watched, Unsupported, &["address"]);
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_retried_change_notifies_and_a_rejected_one_does_not() {
    let (server, state) = opened().await;
    let mut changes = state.changes(&mail()).await.unwrap();
    assert_eq!(kind(pause_queue(&state, &numbered(1)).await), NotFound);
    assert!(timeout(Duration::from_millis(200), changes.next()).await.is_err());
    server.psql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE application_name = 'interval-queue' AND query NOT LIKE 'LISTEN%'",
    );
    pause(&state).await.unwrap();
    notified(&mut changes).await;
}
