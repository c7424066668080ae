//! What is in the server: keys, their expiry, and what is left untouched.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::*;
use interval_queue_contract::{Change, Memory, Micros, QueueName, SharedState, StateErrorKind};
use interval_queue_redis::RedisState;
use interval_queue_test_support::RedisServer;

const HEADER: &str = "{interval-queue:mail}";

fn ttl(server: &RedisServer, key: &str) -> i64 {
    server.command(&["PTTL", key])[0].parse().unwrap()
}

/// All that the server holds, as one text.
fn everything(server: &RedisServer) -> Vec<String> {
    let mut keys = server.command(&["KEYS", "*"]);
    keys.sort();
    let dump = |key: &String| format!("{key} {:?}", server.command(&["DUMP", key]));
    keys.iter().map(dump).collect()
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn an_idle_queue_outlives_what_it_reserves_and_no_more() {
    let server = RedisServer::start();
    let idle = Duration::from_secs(7200);
    let state = RedisState::builder(server.url()).idle_expiry(idle).connect().await.unwrap();
    open(&state).await.unwrap();
    let idle = idle.as_millis() as i64;
    assert!((idle..3 * idle).contains(&ttl(&server, HEADER)));

    Shard::new("a").step(&state, 2).await.unwrap();
    let keys = server.command(&["KEYS", "*"]);
    assert_eq!(keys.len(), 4, "{keys:?}");
    for key in &keys {
        assert!((idle..3 * idle).contains(&ttl(&server, key)), "{key}");
    }

    let year = 365 * 24 * 3600 * 1000;
    let hold = Change::Hold(Micros::from_millis(year as u64));
    change(&state, hold, Memory::default()).await.unwrap();
    for key in &keys {
        assert!(ttl(&server, key) > year + idle, "{key}");
    }

    change(&state, Change::Pause, Memory::default()).await.unwrap();
    for key in &keys {
        assert_eq!(ttl(&server, key), -1, "{key}");
    }
    change(&state, Change::Resume, Memory::default()).await.unwrap();
    for key in &keys {
        assert!(ttl(&server, key) > year + idle, "{key}");
    }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_key_that_comes_back_expires_too() {
    let server = RedisServer::start();
    let state = connect(server.url()).await;
    open(&state).await.unwrap();
    let mut shard = Shard::new("a");
    for count in [2, 0, 2] {
        shard.step(&state, count).await.unwrap();
        shard.waiting.clear();
        shard.step(&state, 0).await.unwrap();
        assert_eq!(server.command(&["KEYS", "*"]), [HEADER]);
    }
    shard.step(&state, 2).await.unwrap();
    for key in server.command(&["KEYS", "*"]) {
        assert!(ttl(&server, &key) > 0, "{key}");
    }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn prefixes_are_separate() {
    let server = RedisServer::start();
    let at = |prefix| RedisState::builder(server.url()).prefix(prefix).connect();
    let (one, other) = (at("a*").await.unwrap(), at("a*:b").await.unwrap());
    open(&one).await.unwrap();
    assert_eq!(read(&other).await, None);
    let names = ["c", "b:c", "{x}", "日本"].map(|name| QueueName::new(name).unwrap());
    for name in &names {
        other.apply(name, opening(5)).await.unwrap();
    }
    assert_eq!(one.queues().await.unwrap(), [mail()]);
    let mut sorted = names.to_vec();
    sorted.sort();
    assert_eq!(other.queues().await.unwrap(), sorted);
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn what_is_not_such_a_record_is_left_alone() {
    for (setup, expected) in [
        (&["SET", HEADER, "x"][..], StateErrorKind::Foreign),
        (&["HSET", HEADER, "colour", "red"], StateErrorKind::Foreign),
        (&["HSET", HEADER, "version", "1", "interval", "5"], StateErrorKind::Foreign),
        (&["HSET", HEADER, "version", "2"], StateErrorKind::NewerVersion),
        (&["SET", "{interval-queue:mail}:shards", "x"], StateErrorKind::Foreign),
        (&["RPUSH", "{interval-queue:mail}:heads", "x"], StateErrorKind::Foreign),
        (&["SET", "{interval-queue:mail}:leases", "x"], StateErrorKind::Foreign),
    ] {
        let server = RedisServer::start();
        server.command(setup);
        let before = everything(&server);
        let state = connect(server.url()).await;
        assert_eq!(kind(open(&state).await), expected, "open: {setup:?}");
        assert_eq!(
            kind(change(&state, Change::Reset, Memory::default()).await),
            expected,
            "reset: {setup:?}"
        );
        assert_eq!(kind(Shard::new("a").step(&state, 1).await), expected, "step: {setup:?}");
        assert_eq!(
            kind(state.apply(&mail(), interval_queue_contract::Command::Read).await),
            expected,
            "read: {setup:?}"
        );
        assert_eq!(everything(&server), before, "{setup:?}");
    }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_field_that_cannot_be_is_foreign_to_every_command_and_left_alone() {
    let server = RedisServer::start();
    let state = connect(server.url()).await;
    let numbers = [
        "interval",
        "revision",
        "ticket",
        "current",
        "free_at",
        "held_until",
        "line_from",
        "gaps_until",
        "longest_lead",
        "lifted_at",
        "seen_at",
        "running",
        "version",
        "max_running",
    ];
    // Lua takes most of these for numbers.
    let no_numbers = [
        "-1",
        "-0",
        "red",
        "nan",
        "-nan",
        "inf",
        "1e999",
        "1e3",
        "1.5",
        "0x10",
        " 5",
        "5 ",
        "5\n",
        "+5",
        "9007199254740992",
        "18446744073709551616",
    ];
    let numbers = numbers.iter().flat_map(|field| no_numbers.map(|value| (*field, value)));
    let others = [
        ("interval", "0"),
        ("interval", "9007199254740991"),
        ("ticket", ""),
        ("max_running", "0"),
        ("max_running", "4294967296"),
        ("current", "1"),
        ("longest_lead", "1000001"),
        ("paused", "yes"),
        ("paused", ""),
        ("version", "0"),
    ];
    for (field, value) in numbers.chain(others) {
        server.command(&["FLUSHALL"]);
        open(&state).await.unwrap();
        server.command(&["HSET", HEADER, field, value]);
        let before = everything(&server);
        let told = |what| format!("{what}: {field} {value:?}");
        assert_eq!(kind(open(&state).await), StateErrorKind::Foreign, "{}", told("open"));
        let paused = change(&state, Change::Pause, Memory::default()).await;
        assert_eq!(kind(paused), StateErrorKind::Foreign, "{}", told("pause"));
        assert_eq!(kind(Shard::new("a").step(&state, 1).await), StateErrorKind::Foreign, "{}", told("step"));
        let read = state.apply(&mail(), interval_queue_contract::Command::Read).await.unwrap_err();
        assert_eq!(read.kind(), StateErrorKind::Foreign, "{}", told("read"));
        assert!(!read.to_string().chars().any(char::is_control), "{read:?}");
        assert_eq!(everything(&server), before, "{}", told("left alone"));
    }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_foreign_key_that_is_no_text_hides_no_queue() {
    let server = RedisServer::start();
    let state = connect(server.url()).await;
    open(&state).await.unwrap();
    server.command(&["EVAL", "return redis.call('SET', '{interval-queue:\\255}', 'x')", "0"]);
    assert_eq!(state.queues().await.unwrap(), [mail()]);
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_record_of_which_a_part_was_evicted_heals() {
    for key in ["shards", "heads", "leases"] {
        let server = RedisServer::start();
        let state = connect(server.url()).await;
        let limit = Change::Open {
            interval: Some(Micros::from_millis(1)),
            max_running: interval_queue_contract::MaxRunning::AtMost(2),
            on_existing: interval_queue_contract::OnExisting::Replace,
        };
        change(&state, limit, Memory::default()).await.unwrap();
        let (mut a, mut b) = (Shard::new("a"), Shard::new("b"));
        a.step(&state, 3).await.unwrap();
        server.command(&["DEL", &format!("{{interval-queue:mail}}:{key}")]);
        a.step(&state, 0).await.unwrap();
        let step = b.step(&state, 1).await.unwrap();
        assert!(step.wait.is_some() || !step.grants.is_empty());
        let snapshot = read(&state).await.unwrap();
        let stored: u64 = server.command(&["HGET", HEADER, "running"])[0].parse().unwrap();
        assert_eq!(snapshot.running(), stored, "{key}");
        let known =
            |key: &str| server.command(&["ZCARD", &format!("{{interval-queue:mail}}:{key}")])[0].clone();
        assert_eq!(known("leases"), snapshot.record.shards.len().to_string(), "{key}");
    }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn without_memory_nothing_changes() {
    let server = RedisServer::start();
    let state = connect(server.url()).await;
    open(&state).await.unwrap();
    let mut shard = Shard::new("a");
    shard.step(&state, 3).await.unwrap();
    let before = everything(&server);
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(kind(shard.step(&state, 1).await), StateErrorKind::Full);
    assert_eq!(kind(change(&state, Change::Pause, Memory::default()).await), StateErrorKind::Full);
    let other = QueueName::new("other").unwrap();
    assert_eq!(kind(state.apply(&other, opening(5)).await), StateErrorKind::Full);
    assert_eq!(everything(&server), before);
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    shard.step(&state, 1).await.unwrap();
}
