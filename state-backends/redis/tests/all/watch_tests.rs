//! Watching: one connection for all queues of a state, only while somebody watches, and back after any
//! trouble.

use std::time::Duration;

use futures::StreamExt;
use interval_queue_contract::{Change, Changes, Command, Memory, QueueName, SharedState, StateErrorKind};
use interval_queue_redis::RedisState;
use interval_queue_test_support::{Proxy, RedisServer};
use tokio::time::timeout;

use crate::common::*;

const NOTIFY_TIMEOUT: Duration = Duration::from_secs(60);

/// Takes what has come so far.
async fn drain(changes: &mut Changes) {
    while timeout(Duration::from_millis(200), changes.next()).await.is_ok() {}
}

/// Whoever watches is told of a pause from now on.
async fn expect_pause(changes: &mut Changes, state: &RedisState) {
    drain(changes).await;
    change(state, Change::Pause, Memory::default()).await.unwrap();
    expect_notification(changes).await;
}

fn watching_connections(server: &RedisServer) -> usize {
    let clients = server.command(&["CLIENT", "LIST", "TYPE", "pubsub"]).join("\n");
    clients.lines().filter(|line| line.contains("id=")).count()
}

async fn until(is_so: impl Fn() -> bool) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("waited in vain");
}

async fn pause(state: &RedisState, queue: &QueueName) {
    state.apply(queue, Command::Change(Change::Pause, Memory::default())).await.unwrap();
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn all_queues_of_a_state_are_watched_over_one_connection() {
    let server = RedisServer::start();
    let (state, other) = (connect(server.url()).await, connect(server.url()).await);
    assert_eq!(watching_connections(&server), 0, "nobody watches yet");
    let mut watched = Vec::new();
    for n in 0..50 {
        let queue = QueueName::new(format!("queue {n}")).unwrap();
        other.apply(&queue, opening(1000)).await.unwrap();
        let changes = state.changes(&queue).await.unwrap();
        watched.push((queue, changes));
    }
    assert_eq!(watching_connections(&server), 1);
    for (queue, changes) in &mut watched {
        pause(&other, queue).await;
        expect_notification(changes).await;
    }
    // One of two who watch a queue leaves, and then all but one queue.
    let second = state.changes(&watched[0].0).await.unwrap();
    drop(second);
    watched.truncate(1);
    let (queue, changes) = &mut watched[0];
    let one = ["{interval-queue:queue 0}:changes"];
    until(|| server.command(&["PUBSUB", "CHANNELS"]) == one).await;
    pause(&other, queue).await;
    expect_notification(changes).await;
    watched.clear();
    until(|| watching_connections(&server) == 0).await;
    // And again.
    let _changes = state.changes(&mail()).await.unwrap();
    assert_eq!(watching_connections(&server), 1);
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_killed_connection_comes_back_and_gives_an_item() {
    let (server, state) = opened().await;
    let mut changes = state.changes(&mail()).await.unwrap();
    for _ in 0..3 {
        drain(&mut changes).await;
        server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        expect_notification(&mut changes).await;
        expect_pause(&mut changes, &state).await;
    }
    assert_eq!(watching_connections(&server), 1);
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_restarted_server_is_watched_again() {
    let mut server = RedisServer::start();
    let state = connect(server.url()).await;
    open(&state).await.unwrap();
    let mut changes = state.changes(&mail()).await.unwrap();
    server.kill();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(kind(state.changes(&mail()).await.map(drop)), StateErrorKind::Unreachable);
    server.start_again();
    expect_notification(&mut changes).await;
    until_it_works(&state).await;
    expect_pause(&mut changes, &state).await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_connection_that_falls_silent_is_noticed() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port());
    let state = connect(&format!("redis://127.0.0.1:{}", proxy.port())).await;
    let mut changes = state.changes(&mail()).await.unwrap();
    proxy.fall_silent();
    proxy.speak();
    // It is asked after ten seconds of silence, and then there is another one.
    expect_notification(&mut changes).await;
    let direct = connect(server.url()).await;
    open(&direct).await.unwrap();
    expect_pause(&mut changes, &direct).await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn nobody_there_is_an_error_at_once() {
    let mut server = RedisServer::start();
    let state = connect(server.url()).await;
    server.kill();
    assert_eq!(kind(state.changes(&mail()).await.map(drop)), StateErrorKind::Unreachable);
    server.start_again();
    let mut changes = state.changes(&mail()).await.unwrap();
    until_it_works(&state).await;
    expect_pause(&mut changes, &state).await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_user_without_the_channels_changes_queues_but_cannot_watch() {
    let server = RedisServer::start();
    let commands = "+evalsha +eval +info +time +hmget +hgetall +hset +hdel +exists +del +pexpire +persist +zcard +zcount \
                    +zrange +zrangebyscore +zadd +zrem";
    let user = |name: &str, more: &str| {
        let rules =
            format!("{name} on >secret resetchannels resetkeys ~{{interval-queue:* -@all {commands} {more}");
        let words: Vec<_> = ["ACL", "SETUSER"].into_iter().chain(rules.split_ascii_whitespace()).collect();
        server.command(&words);
        server.url().replace("redis://", &format!("redis://{name}:secret@"))
    };
    // As it was documented before there was anything to watch.
    let without = connect(&user("without", "")).await;
    let no_channels = connect(&user("no-channels", "+publish +subscribe +unsubscribe")).await;
    let with = connect(&user("with", "+publish +subscribe +unsubscribe +ping &{interval-queue:*")).await;
    open(&without).await.unwrap();
    let mut changes = with.changes(&mail()).await.unwrap();
    for state in [&without, &no_channels] {
        change(state, Change::Pause, Memory::default()).await.unwrap();
        assert!(read(state).await.unwrap().record.paused);
        change(state, Change::Resume, Memory::default()).await.unwrap();
        assert!(!read(state).await.unwrap().record.paused);
        let error = state.changes(&mail()).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Denied, "{error:?}");
        assert!(error.to_string().contains("{interval-queue:mail}:changes"), "{error}");
    }
    expect_pause(&mut changes, &with).await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn rights_that_are_taken_away_end_the_watching() {
    let server = RedisServer::start();
    server.command(&["ACL", "SETUSER", "ann", "on", ">secret", "allkeys", "allchannels", "+@all"]);
    let state = connect(&server.url().replace("redis://", "redis://ann:secret@")).await;
    let mut changes = state.changes(&mail()).await.unwrap();
    // The server ends connections that are subscribed to what they may not be.
    server.command(&["ACL", "SETUSER", "ann", "resetchannels"]);
    server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    assert_eq!(timeout(NOTIFY_TIMEOUT, changes.next()).await.unwrap(), None);
    until(|| watching_connections(&server) == 0).await;
}
