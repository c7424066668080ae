//! What is in the server: keys, their expiry, and what is left untouched.

use std::time::Duration;

use interval_queue_contract::{
    Change, Command, MaxRunning, Memory, Micros, OnExisting, QueueName, Rates, SharedState, StateErrorKind,
    WaitReason,
};
use interval_queue_redis::{RedisState, RedisStore};
use interval_queue_test_support::RedisServer;

use crate::common::*;

const QUEUE: &str = "{interval-queue:mail}";
const INDEX: &str = "{interval-queue:mail}:index";

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
    let state = RedisState::on(
        &RedisStore::builder(server.url()).unwrap().idle_expiry(idle).connect().await.unwrap(),
    );
    open(&state).await.unwrap();
    let idle = idle.as_millis() as i64;
    assert!((idle..3 * idle).contains(&ttl(&server, QUEUE)));

    Shard::new("a").step(&state, 2).await.unwrap();
    let keys = server.command(&["KEYS", "*"]);
    assert_eq!(keys.len(), 2, "{keys:?}");
    let year = 365 * 24 * 3600 * 1000;
    let hold = Change::Hold(Micros::from_millis(year as u64));
    let once_held = year + idle..year + 3 * idle;
    let steps = [
        (None, idle..3 * idle),
        (Some(hold), once_held.clone()),
        (Some(Change::Pause), -1..0),
        (Some(Change::Resume), once_held),
    ];
    for (what, expected) in steps {
        if let Some(what) = what {
            change(&state, what, Memory::default()).await.unwrap();
        }
        for key in &keys {
            assert!(expected.contains(&ttl(&server, key)), "{key} after {what:?}");
        }
    }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn the_rate_of_a_queue_with_stored_tasks_does_not_expire() {
    let (server, state) = opened().await;
    let mut shard = Shard::new("a");
    shard.step(&state, 2).await.unwrap();
    assert!(ttl(&server, QUEUE) > 0 && ttl(&server, INDEX) > 0);
    server.command(&["HSET", "{interval-queue:mail}:t", "queue", "a row"]);
    open(&state).await.unwrap();
    assert_eq!([QUEUE, INDEX].map(|key| ttl(&server, key)), [-1, -1]);
    shard.step(&state, 1).await.unwrap();
    assert_eq!([QUEUE, INDEX].map(|key| ttl(&server, key)), [-1, -1]);
    server.command(&["DEL", "{interval-queue:mail}:t"]);
    shard.step(&state, 1).await.unwrap();
    assert!(ttl(&server, QUEUE) > 0 && ttl(&server, INDEX) > 0);
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_key_that_comes_back_expires_too() {
    let (server, state) = opened().await;
    let mut shard = Shard::new("a");
    for count in [2, 0, 2] {
        shard.step(&state, count).await.unwrap();
        shard.waiting.clear();
        shard.step(&state, 0).await.unwrap();
        assert_eq!(server.command(&["KEYS", "*"]), [QUEUE]);
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
    let at = async |prefix| {
        let builder = RedisStore::builder(server.url()).unwrap().prefix(prefix);
        RedisState::on(&builder.connect().await.unwrap())
    };
    let (one, other) = (at("a*").await, at("a*:b").await);
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

/// Every command is refused, and changes nothing.
async fn is_left_alone(server: &RedisServer, state: &RedisState, expected: StateErrorKind, what: &str) {
    let before = everything(server);
    let looked = state.apply(&mail(), Command::Read).await;
    let kinds = [
        kind(open(state).await),
        kind(change(state, Change::Pause, Memory::default()).await),
        kind(change(state, Change::Reset, Memory::default()).await),
        kind(Shard::new("a").step(state, 1).await),
        kind(looked),
    ];
    assert_eq!(kinds, [expected; 5], "{what}");
    assert_eq!(everything(server), before, "{what}");
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn foreign_keys_are_left_alone() {
    use StateErrorKind::{Foreign, NewerVersion};
    let (server, state) = opened().await;
    let of_version = |version| format!("redis.call('HSET', KEYS[1], '', struct.pack('<d', {version}))");
    for (setup, expected) in [
        (&["SET", QUEUE, "x"][..], Foreign),
        (&["HSET", QUEUE, "colour", "red"], Foreign),
        (&["HSET", QUEUE, "version", "1", "interval", "5"], Foreign),
        (&["EVAL", &of_version(4), "1", QUEUE], NewerVersion),
        (&["EVAL", &of_version(2), "1", QUEUE], Foreign),
        (&["HSET", QUEUE, "", ""], Foreign),
        (&["SET", INDEX, "x"], Foreign),
        (&["RPUSH", INDEX, "x"], Foreign),
    ] {
        server.command(&["FLUSHALL"]);
        server.command(setup);
        is_left_alone(&server, &state, expected, &format!("{setup:?}")).await;
    }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn an_impossible_record_is_foreign_to_all_and_left_alone() {
    // Its place in the record, counted from one, and its value.
    const SPOIL: &str = "
local record, at = redis.call('HGET', KEYS[1], ''), 8 * (ARGV[1] - 1)
local number = struct.pack('<d', tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], '', string.sub(record, 1, at) .. number .. string.sub(record, at + 9))";
    const CUT: &str =
        "redis.call('HSET', KEYS[1], '', string.sub(redis.call('HGET', KEYS[1], ''), 1, tonumber(ARGV[1])))";
    let no_numbers = ["-1", "0.5", "nan", "-nan", "inf", "-inf", "9007199254740992", "1e300"];
    let numbers = (1..=21).flat_map(|place| no_numbers.map(|value| (place, value)));
    let (version, interval, burst, more) = (1, 2, 3, 5);
    let (max_running, paused, current, longest_lead) = (7, 8, 11, 15);
    let others = [
        (version, "0"),
        (version, "2"),
        (version, "2.5"),
        (interval, "0"),
        (interval, "31622400000001"),
        (burst, "0"),
        (burst, "1000001"),
        (more, "1"),
        (more, "8"),
        (max_running, "4294967296"),
        (paused, "2"),
        (current, "1"),
        (longest_lead, "1000001"),
    ];
    let spoilt = numbers.chain(others).map(|(place, value)| (SPOIL, place, value));
    let (server, state) = opened().await;
    for (script, place, value) in spoilt.chain([0, 1, 7, 8, 167].map(|length| (CUT, length, ""))) {
        server.command(&["FLUSHALL"]);
        open(&state).await.unwrap();
        server.command(&["EVAL", script, "1", QUEUE, &place.to_string(), value]);
        is_left_alone(&server, &state, StateErrorKind::Foreign, &format!("{script}: {place} {value}")).await;
    }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn an_invalid_presence_is_foreign_to_its_shard_and_readers() {
    let (server, state) = opened().await;
    let not_a_number = "struct.pack('<d', 0/0) .. string.sub(stored, 9)";
    for spoilt in ["'- 0 0 1 0 0 0 label'", "string.sub(stored, 1, 55)", not_a_number] {
        server.command(&["FLUSHALL"]);
        open(&state).await.unwrap();
        let mut shard = Shard::new("a");
        shard.step(&state, 2).await.unwrap();
        let spoil = format!(
            "local stored = redis.call('HGET', KEYS[1], 'a') redis.call('HSET', KEYS[1], 'a', {spoilt})"
        );
        server.command(&["EVAL", &spoil, "1", QUEUE]);
        let before = everything(&server);
        assert_eq!(kind(shard.step(&state, 1).await), StateErrorKind::Foreign, "{spoilt}");
        let read = state.apply(&mail(), Command::Read).await.unwrap_err();
        assert_eq!(read.kind(), StateErrorKind::Foreign, "{spoilt}");
        assert!(!read.to_string().chars().any(char::is_control), "{read:?}");
        assert_eq!(everything(&server), before, "{spoilt}");
    }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_foreign_key_that_is_no_text_hides_no_queue() {
    let (server, state) = opened().await;
    server.command(&["EVAL", "return redis.call('SET', '{interval-queue:\\255}', 'x')", "0"]);
    assert_eq!(state.queues().await.unwrap(), [mail()]);
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn an_evicted_index_is_rebuilt_by_a_waiting_shards_step() {
    let (server, state) = opened().await;
    let (mut a, mut b, mut c) = (Shard::new("a"), Shard::new("b"), Shard::new("c"));
    a.step(&state, 3).await.unwrap();
    b.step(&state, 2).await.unwrap();
    let places = || -> Vec<(String, i64)> {
        let with_scores = server.command(&["ZRANGE", INDEX, "0", "-1", "WITHSCORES"]);
        with_scores.chunks(2).map(|pair| (pair[0].clone(), pair[1].parse().unwrap())).collect()
    };
    let before = places();
    assert_eq!(before.len(), 4, "{before:?}");
    server.command(&["DEL", INDEX]);
    // Somebody new cannot notice.
    c.step(&state, 1).await.unwrap();
    b.step(&state, 0).await.unwrap();
    let mut after = places();
    after.retain(|(_, place)| *place > 0);
    assert_eq!(after, [("a".into(), 2), ("b".into(), 4), ("c".into(), 6)]);
    assert_eq!(places().len(), 6);
    assert!(ttl(&server, INDEX) > 0);
    let wait = c.step(&state, 0).await.unwrap().wait.unwrap();
    let in_front = matches!(&wait.reason, WaitReason::Behind { shard, ticket } if shard.as_str() == "a" && ticket.get() == 2);
    assert!(in_front, "{wait:?}");
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn shards_that_died_during_an_eviction_are_forgotten() {
    let server = RedisServer::start();
    let state = connect(server.url()).await;
    let limit = Change::Open {
        rates: Some(Rates::every(Micros::from_millis(1))),
        max_running: MaxRunning::AtMost(1),
        on_existing: OnExisting::Replace,
    };
    change(&state, limit, Memory::default()).await.unwrap();
    let (mut a, mut b, mut c) = (Shard::new("a"), Shard::new("b"), Shard::new("c"));
    (a.lease, b.lease) = (Micros::from_millis(200), Micros::from_millis(200));
    assert_eq!(a.step(&state, 3).await.unwrap().grants.len(), 1);
    b.step(&state, 2).await.unwrap();
    server.command(&["DEL", INDEX]);
    c.step(&state, 1).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    // It notices, and then it is alone.
    c.step(&state, 0).await.unwrap();
    assert_eq!(c.step(&state, 0).await.unwrap().grants.len(), 1);
    let snapshot = read(&state).await.unwrap();
    assert_eq!(snapshot.record.shards.keys().map(|id| id.as_str()).collect::<Vec<_>>(), ["c"]);
    assert_eq!(snapshot.running(), 1);
}

/// How many commands the scripts have run.
fn commands_in_scripts(server: &RedisServer) -> u64 {
    let stats = server.command(&["INFO", "commandstats"]).concat();
    let calls = stats.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let name = name.split('|').next()?;
        let counts = !["info", "eval", "evalsha", "config"].contains(&name);
        counts.then(|| rest.split(',').next()?.parse::<u64>().ok())?
    });
    calls.sum()
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_step_takes_few_commands_for_any_shards_and_tickets() {
    let server = RedisServer::start();
    let state = connect(server.url()).await;
    for (others, count) in [(1, 2), (1, 512), (300, 2), (300, 512)] {
        server.command(&["FLUSHALL"]);
        state.apply(&mail(), opening(1)).await.unwrap();
        let mut shard = Shard::new("a");
        shard.step(&state, count).await.unwrap();
        for n in 0..others {
            // One may be granted at once if this takes its time.
            Shard::new(format!("other {n}").leak()).step(&state, 2).await.unwrap();
        }
        shard.lead = Micros::from_millis(1000);
        server.command(&["CONFIG", "RESETSTAT"]);
        let stepped = shard.step(&state, 0).await.unwrap();
        assert_eq!(stepped.grants.len(), count as usize - 1);
        // What is there, the clock, who is in front; the shard leaves both keys, and the record is written.
        assert_eq!(commands_in_scripts(&server), 6, "{others} others, {count} tickets");
    }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn without_memory_nothing_changes() {
    let (server, state) = opened().await;
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
