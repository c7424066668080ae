//! What can be wrong with a server: nothing is half done, and what is there is left as it is.

use interval_queue_contract::StateErrorKind;
use interval_queue_redis::{RedisStore, RedisTasks};
use interval_queue_task_contract::{
    Added, Change, ChangeTasks, Command, Json, NewEdge, NewTask, OnFailure, Read, Reply, Selector, State,
    TaskStore, Verb,
};
use interval_queue_test_support::{RedisServer, wait_until};

use super::support::*;

const KEYS: [&str; 5] = [
    "{interval-queue:mail}:t",
    "{interval-queue:mail}:t:tasks",
    "{interval-queue:mail}:t:bodies",
    "{interval-queue:mail}:t:edges",
    "{interval-queue:mail}:t:index",
];

/// A queue in which something of everything is stored.
async fn filled(store: &RedisTasks) {
    let mut long = NewTask::new(id(2), Json::of(&"x".repeat(5_000)).unwrap());
    long.edges = vec![NewEdge { up: id(1), name: None, on_failure: OnFailure::Wait }];
    store.apply(&mail(), add([task(1), long, task(3)])).await.unwrap();
    Hand::new(store, 1).step(Vec::new(), 1).await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn keys_of_another_type_are_left_alone() {
    for key in KEYS {
        let server = RedisServer::start();
        let store = connect(&server).await;
        filled(&store).await;
        server.command(&["SET", key, "mine"]);
        let before = everything(&server);
        let mut long = NewTask::new(id(20), Json::of(&"x".repeat(5_000)).unwrap());
        long.edges = vec![NewEdge { up: id(3), name: None, on_failure: OnFailure::Run }];
        for command in [add([task(10)]), add([long])] {
            // What does not touch a key need not notice.
            match store.apply(&mail(), command).await {
                Err(error) => {
                    assert_eq!(error.kind(), StateErrorKind::Foreign, "{key}: {error:?}");
                    assert_eq!(everything(&server), before, "{key}");
                }
                Ok(_) => assert!(key.ends_with("bodies") || key.ends_with("edges"), "{key} was not noticed"),
            }
            if key.ends_with("bodies") || key.ends_with("edges") {
                break;
            }
        }
        let mut hand = Hand::new(&store, 2);
        let before = everything(&server);
        if let Err(error) = hand.try_step(Vec::new(), 10).await {
            assert_eq!(error.kind(), StateErrorKind::Foreign, "{key}: {error:?}");
            assert_eq!(everything(&server), before, "{key}");
        }
        assert_eq!(server.command(&["GET", key]), ["mine"]);
    }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn other_layouts_and_a_lost_row_are_named() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    filled(&store).await;
    let script = "local row = cmsgpack.unpack(redis.call('HGET', KEYS[1], ''))
        row.version = tonumber(ARGV[1])
        return redis.call('HSET', KEYS[1], '', cmsgpack.pack(row))";
    for (version, kind, expected) in [
        ("5", StateErrorKind::NewerVersion, "stored in layout 5, this program reads layout 4: upgrade it"),
        ("1", StateErrorKind::Unsupported, "stored in layout 1"),
        ("", StateErrorKind::Foreign, "has no version"),
    ] {
        server.command(&["EVAL", script, "1", KEYS[0], version]);
        let before = everything(&server);
        for command in [add([task(10)]), Command::Read(Read::Overview)] {
            let error = store.apply(&mail(), command).await.unwrap_err();
            assert_eq!(error.kind(), kind);
            assert!(error.to_string().contains(expected), "{error}");
        }
        assert_eq!(everything(&server), before);
    }
    for spoil in [&["HSET", KEYS[0], "", "junk"][..], &["HDEL", KEYS[0], ""]] {
        server.command(spoil);
        let error = store.apply(&mail(), add([task(10)])).await.unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Foreign, "{spoil:?}: {error}");
    }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_lost_key_is_named_and_not_made_again() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    for key in KEYS {
        server.command(&["FLUSHALL"]);
        filled(&store).await;
        server.command(&["DEL", key]);
        let before = everything(&server);
        let is_named = |error: interval_queue_contract::StateError| {
            assert_eq!(error.kind(), StateErrorKind::Damaged, "{key}: {error}");
            assert!(error.to_string().contains(&format!("lost the key {key:?}")), "{error}");
        };
        // The payload is the one thing that BODIES has.
        is_named(store.apply(&mail(), Command::Read(Read::Tasks(vec![id(2)]))).await.unwrap_err());
        if !key.ends_with("bodies") {
            is_named(store.apply(&mail(), Command::Read(Read::Overview)).await.unwrap_err());
            is_named(store.apply(&mail(), add([task(10)])).await.unwrap_err());
            is_named(Hand::new(&store, 2).try_step(Vec::new(), 10).await.unwrap_err());
        }
        assert_eq!(everything(&server), before, "{key}");
    }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_server_that_evicts_is_warned_of() {
    for (limit, policy, is_warned) in
        [("64mb", "allkeys-lru", true), ("64mb", "noeviction", false), ("0", "allkeys-lru", false)]
    {
        let server = RedisServer::with_args(&["--maxmemory", limit, "--maxmemory-policy", policy]);
        let store = RedisStore::builder(server.url()).unwrap().connect().await.unwrap();
        let warning = store.warning().unwrap_or_default();
        assert_eq!(warning.contains(policy), is_warned, "{limit} {policy}: {warning:?}");
    }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_replica_changes_nothing() {
    let master = RedisServer::start();
    filled(&connect(&master).await).await;
    let replica = RedisServer::replica_of(&master);
    let store = connect(&replica).await;
    let error = store.apply(&mail(), add([task(10)])).await.unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Unreachable, "{error:?}");
    assert_eq!(all(&store, &mail()).await.len(), 3, "it can be looked at");
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_full_server_rejects_tasks_and_runs_those_it_has() {
    let server = RedisServer::with_args(&["--maxmemory-policy", "noeviction"]);
    let store = connect(&server).await;
    let mut hand = Hand::new(&store, 1);
    hand.step(Vec::new(), 0).await;
    let used: u64 = server
        .command(&["INFO", "memory"])
        .join("\n")
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:")?.trim().parse().ok())
        .unwrap();
    server.command(&["CONFIG", "SET", "maxmemory", &(used + 3_000_000).to_string()]);
    let mut added = 0;
    let refused = loop {
        let body = Json::of(&"x".repeat(700)).unwrap();
        let batch = (added..added + 100).map(|n| NewTask::new(id(n), body.clone()));
        match store.apply(&mail(), add(batch)).await {
            Ok(_) => added += 100,
            Err(error) => break error,
        }
        assert!(added < 100_000, "it is never full");
    };
    assert_eq!(refused.kind(), StateErrorKind::Full, "{refused:?}");
    let leased = hand.step(Vec::new(), 10).await.leased;
    assert_eq!(leased.len(), 10, "what makes room goes on");
    assert_eq!(all(&store, &mail()).await.len() as u64, added);
    is_sound(&store).await;
    let purge = ChangeTasks {
        selector: Selector::states([State::Done]),
        verb: Verb::Purge,
        after: None,
        watermark: None,
        limit: 100,
        dry_run: false,
    };
    hand.step(done(&leased), 0).await;
    let reply = store.apply(&mail(), Command::Change(Change::Tasks(purge))).await.unwrap();
    assert!(matches!(reply, Reply::Touched(touched) if touched.ids.len() == 10));
    is_sound(&store).await;
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    store.apply(&mail(), add([task(1_000_000)])).await.unwrap();
    is_sound(&store).await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_restart_with_an_append_only_file_loses_nothing() {
    let mut server = RedisServer::with_args(&["--appendonly", "yes", "--appendfsync", "always"]);
    let store = connect(&server).await;
    store.apply(&mail(), add((0..50).map(task))).await.unwrap();
    let mut hand = Hand::new(&store, 1);
    let leased = hand.step(Vec::new(), 20).await.leased;
    let before = all(&store, &mail()).await;
    server.restart();
    let stepped = loop {
        match hand.try_step(done(&leased), 5).await {
            Ok(stepped) => break stepped,
            // The connection was lost before the step or after it: the next one says all that is held.
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
        hand.step.held = Some(Vec::new());
    };
    assert_eq!((stepped.lost, stepped.leased.len()), (vec![], 5));
    let after = all(&store, &mail()).await;
    assert_eq!(after.len(), before.len());
    assert_eq!(after.iter().filter(|stored| stored.task.state == State::Done).count(), 20);
    is_sound(&store).await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_server_that_lost_everything_repeats_no_token() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    store.apply(&mail(), add([task(1)])).await.unwrap();
    let mut hand = Hand::new(&store, 1);
    let first = hand.step(Vec::new(), 1).await.leased.remove(0).task;
    server.command(&["FLUSHALL"]);
    // The producer tries again, and another worker takes it before the first one is heard of.
    let added = store.apply(&mail(), add([task(1)])).await.unwrap();
    assert_eq!(added, Reply::Added(vec![Added::New(id(1))]));
    let mut other = Hand::new(&store, 2);
    let second = other.step(Vec::new(), 1).await.leased.remove(0).task;
    assert!(second.token > first.token, "{} and {}", second.token, first.token);
    let stepped = hand.step(Vec::new(), 1).await;
    assert!(stepped.resync && stepped.leased.is_empty());
    hand.step.held = Some(vec![(first.id, first.token)]);
    assert_eq!(hand.step(Vec::new(), 1).await.lost, [first.id]);
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_forgotten_script_and_a_cut_connection_are_no_trouble() {
    let server = RedisServer::start();
    let store = connect(&server).await;
    let mut hand = Hand::new(&store, 1);
    for n in 0..20 {
        store.apply(&mail(), add([task(n)])).await.unwrap();
        match n % 2 {
            0 => server.command(&["FUNCTION", "FLUSH"]),
            _ => server.command(&["CLIENT", "KILL", "TYPE", "normal"]),
        };
        let mut stepped = hand.try_step(Vec::new(), 1).await;
        // The connection was lost before or after the step: the next one says all that is held.
        while stepped.is_err() {
            hand.step.held = Some(Vec::new());
            stepped = hand.try_step(Vec::new(), 1).await;
        }
        let leased = stepped.unwrap().leased;
        assert_eq!(leased.len(), 1, "{n}");
        hand.step(done(&leased), 0).await;
    }
    is_sound(&store).await;
    assert!(all(&store, &mail()).await.iter().all(|stored| stored.task.state == State::Done));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn watchers_are_notified_of_tasks_after_a_restart() {
    let mut server = RedisServer::start();
    let (store, other) = (connect(&server).await, connect(&server).await);
    let mut changes = store.changes(&mail()).await.unwrap();
    other.apply(&mail(), add([task(1)])).await.unwrap();
    crate::common::expect_notification(&mut changes).await;
    server.restart();
    // Something may have been missed.
    crate::common::expect_notification(&mut changes).await;
    wait_until("the server is used again", || server.try_command(&["PING"]).is_ok());
    while other.apply(&mail(), add([task(2)])).await.is_err() {}
    crate::common::expect_notification(&mut changes).await;
}

/// What a replica never heard of is lost with the master; nothing else is, and no token is given out twice.
#[cfg(feature = "sentinel")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_failover_keeps_replicated_tasks_and_repeats_no_token() {
    let mut master = RedisServer::start();
    let replica = RedisServer::replica_of(&master);
    let sentinel = RedisServer::sentinel_of(&master);
    sentinel.wait_until("the sentinel knows the replica", |sentinel| {
        let known = sentinel.command(&["SENTINEL", "REPLICAS", interval_queue_test_support::SENTINEL_MASTER]);
        known.contains(&replica.port().to_string())
    });
    let store = connect(&sentinel).await;
    store.apply(&mail(), add((0..30).map(task))).await.unwrap();
    let mut hand = Hand::new(&store, 1);
    hand.step.held = Some(Vec::new());
    let kept = hand.step(Vec::new(), 10).await.leased;
    wait_until("the replica has the lease", || {
        let offset = |server: &RedisServer| {
            let info = server.command(&["INFO", "replication"]).join("\n");
            let line = info.lines().find_map(|line| line.strip_prefix("master_repl_offset:"));
            line.map(|offset| offset.trim().to_owned())
        };
        offset(&master) == offset(&replica)
    });
    // From now on the replica hears nothing.
    replica.command(&["CONFIG", "SET", "masterauth", "wrong"]);
    master.command(&["CLIENT", "KILL", "TYPE", "replica"]);
    let lost = hand.step(Vec::new(), 5).await.leased;
    master.kill();
    let mut other = Hand::new(&store, 2);
    let leased = loop {
        other.step.held = Some(Vec::new());
        match other.try_step(Vec::new(), 100).await {
            Ok(stepped) => break stepped.leased,
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    assert_eq!(replica.command(&["ROLE"])[0], "master");
    assert_eq!(leased.len(), 20);
    let tokens: std::collections::HashSet<_> =
        kept.iter().chain(&lost).chain(&leased).map(|one| (one.task.id, one.task.token)).collect();
    assert_eq!(tokens.len(), 35, "a token was given out twice");
    hand.step.held = Some(Vec::new());
    let both = [&kept[..], &lost].concat();
    let stepped = hand.step(done(&both), 0).await;
    assert_eq!(stepped.lost, lost.iter().map(|one| one.task.id).collect::<Vec<_>>());
    assert_eq!(other.step(done(&leased), 0).await.lost, []);
    is_sound(&store).await;
    assert!(all(&store, &mail()).await.iter().all(|stored| stored.task.state == State::Done));
}

#[cfg(feature = "cluster")]
#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn queues_of_a_cluster_are_on_all_its_nodes() {
    let nodes = RedisServer::cluster(3);
    let store = connect(&nodes[0]).await;
    let names: Vec<_> =
        (0..12).map(|n| interval_queue_contract::QueueName::new(format!("queue {n:02}")).unwrap()).collect();
    for name in &names {
        store.apply(name, add([task(1), task(2)])).await.unwrap();
        assert_eq!(all(&store, name).await.len(), 2);
    }
    assert_eq!(store.queues().await.unwrap(), names);
    assert!(nodes.iter().all(|node| node.command(&["DBSIZE"])[0] != "0"));
    let mut changes = store.changes(&names[3]).await.unwrap();
    store.apply(&names[3], add([task(3)])).await.unwrap();
    crate::common::expect_notification(&mut changes).await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_user_without_the_rights_makes_no_queue() {
    let server = RedisServer::start();
    server.command(&["ACL", "SETUSER", "half", "on", ">secret", "~*", "+@all", "-zadd"]);
    let url = server.url().replace("redis://", "redis://half:secret@");
    let store = RedisTasks::connect(url).await.unwrap();
    let error = store.apply(&mail(), add([task(1)])).await.unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Denied);
    assert!(error.to_string().contains("may not run ZADD"), "{error}");
    assert_eq!(server.command(&["DBSIZE"]), ["0"]);
}
