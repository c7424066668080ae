//! What can happen to a server and to the connection, and that the next command works once it is over.

use std::time::{Duration, Instant};

use interval_queue_contract::{Change, Command, QueueName, SharedState, StateErrorKind};
use interval_queue_redis::{RedisState, RedisStore};
use interval_queue_test_support::{Proxy, RedisServer, stranger};

use crate::common::*;

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn forgotten_scripts_are_sent_again() {
    let (server, state) = opened().await;
    let mut shard = Shard::new("a");
    for n in 1..4 {
        server.command(&["SCRIPT", "FLUSH"]);
        let stepped = shard.step(&state, 1).await.unwrap();
        assert_eq!(stepped.memory.ticket.get(), n);
    }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn nothing_there_is_an_error_at_once() {
    let mut server = RedisServer::start();
    let url = server.url().to_owned();
    server.kill();
    let error = RedisState::connect(url.clone()).await.unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Unreachable);
    assert!(error.to_string().contains(&url["redis://".len()..]), "{error}");
}

#[tokio::test]
async fn a_listener_that_says_nothing_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let error = RedisStore::builder(&url).unwrap().timeout(TIMEOUT).connect().await.unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Unreachable);
}

#[tokio::test]
async fn a_foreign_server_differs_from_one_that_is_down() {
    let schemes = [
        "redis",
        #[cfg(feature = "tls")]
        "rediss",
    ];
    for answer in
        [&b"SSH-2.0-OpenSSH_9.2p1\r\n"[..], b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\x01\x02\x03\xff\xfe"]
    {
        let port = stranger(answer);
        for scheme in schemes {
            let error = RedisState::connect(format!("{scheme}://127.0.0.1:{port}")).await.unwrap_err();
            assert_eq!(error.kind(), StateErrorKind::Unreachable, "{error:?}");
            let words =
                format!("what answers at 127.0.0.1:{port} does not speak as redis does: check host and port");
            assert_eq!(error.to_string(), words, "{error:?}");
        }
    }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_restart_with_loss_heals_by_itself() {
    let (mut server, state) = opened().await;
    let mut shard = Shard::new("a");
    shard.step(&state, 5).await.unwrap();
    server.kill();
    assert_eq!(kind(shard.step(&state, 0).await), StateErrorKind::Unreachable);
    assert_eq!(kind(shard.step(&state, 0).await), StateErrorKind::Unreachable);
    server.start_again();
    assert_eq!(read(&state).await, None, "the record is lost");
    let stepped = shard.step(&state, 1).await.unwrap();
    assert_eq!(stepped.taken.unwrap().first.get(), 6, "lifted by what the shard remembers");
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_restart_that_keeps_the_record_is_noticed_by_the_run_id() {
    let mut server = RedisServer::with_args(&["--appendonly", "yes"]);
    let state = connect(server.url()).await;
    open(&state).await.unwrap();
    let before = read(&state).await.unwrap().record;
    assert_eq!(before.incarnation.len(), 40);
    server.restart();
    until_it_works(&state).await;
    let after = read(&state).await.unwrap().record;
    assert_ne!(after.incarnation, before.incarnation);
    assert!(after.next_slot(1) > before.next_slot(1) + after.interval());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_server_killed_while_commands_are_under_way() {
    let mut server = RedisServer::start();
    let state = std::sync::Arc::new(connect(server.url()).await);
    open(&state).await.unwrap();
    server.command(&["CLIENT", "PAUSE", "60000"]);
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let state = state.clone();
            tokio::spawn(async move { open(&state).await })
        })
        .collect();
    tokio::time::sleep(TIMEOUT / 5).await;
    server.kill();
    for command in waiting {
        let kind = kind(command.await.unwrap());
        assert!(matches!(kind, StateErrorKind::Unreachable | StateErrorKind::TimedOut), "{kind:?}");
    }
    server.start_again();
    until_it_works(&state).await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_connection_cut_by_the_server_is_made_anew() {
    let server = RedisServer::start();
    let state = connect(server.url()).await;
    for _ in 0..3 {
        open(&state).await.unwrap();
        server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        until_it_works(&state).await;
    }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_server_that_does_not_answer_is_a_time_out_and_not_a_hang() {
    let (server, state) = opened().await;
    server.command(&["CLIENT", "PAUSE", "60000", "WRITE"]);
    #[allow(clippy::disallowed_methods, reason = "the host's clock is what is tested")]
    let began = Instant::now();
    assert_eq!(kind(open(&state).await), StateErrorKind::TimedOut);
    let second = kind(open(&state).await);
    assert!(matches!(second, StateErrorKind::Unreachable | StateErrorKind::TimedOut), "{second:?}");
    assert!(began.elapsed() < Duration::from_secs(30));
    server.command(&["CLIENT", "UNPAUSE"]);
    until_it_works(&state).await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_dropped_command_leaves_a_link_that_works() {
    let (server, state) = opened().await;
    server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    for polls in 0..20 {
        let mut command = std::pin::pin!(open(&state));
        for _ in 0..polls {
            // Ready at once: so it is polled once.
            tokio::select! { biased; _ = &mut command => break, () = std::future::ready(()) => {} }
            tokio::task::yield_now().await;
        }
        server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    }
    until_it_works(&state).await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn commands_of_many_queues_do_not_wait_for_each_other() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port());
    let state = RedisState::connect(format!("redis://127.0.0.1:{}", proxy.port())).await.unwrap();
    let names: Vec<_> = (0..100).map(|n| QueueName::new(format!("queue {n}")).unwrap()).collect();
    // So that no command waits for the source of the script.
    open(&state).await.unwrap();
    proxy.delay(Duration::from_millis(20), Duration::from_millis(20));
    #[allow(clippy::disallowed_methods, reason = "the host's clock is what is tested")]
    let now = Instant::now;
    let began = now();
    for name in &names[..20] {
        state.apply(name, opening(5)).await.unwrap();
    }
    let one_after_the_other = began.elapsed();
    let began = now();
    let opened = futures::future::join_all(names.iter().map(|name| state.apply(name, opening(5)))).await;
    assert!(opened.iter().all(Result::is_ok));
    let together = began.elapsed();
    assert!(
        together < one_after_the_other,
        "all in {together:?}, a fifth of them in {one_after_the_other:?}"
    );
    assert_eq!(server.command(&["INFO", "clients"]).concat().matches("connected_clients:2\r").count(), 1);
}

/// The number of the last connection that ran a script.
fn newest_connection(server: &RedisServer) -> u64 {
    let list = server.command(&["CLIENT", "LIST"]).concat();
    let scripts = list.lines().filter(|client| client.contains(" cmd=eval"));
    let id = |client: &str| client.split_whitespace().next()?.strip_prefix("id=")?.parse().ok();
    scripts.filter_map(id).max().unwrap()
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_replica_serves_once_it_is_promoted() {
    let master = RedisServer::start();
    let replica = RedisServer::replica_of(&master);
    let state = connect(replica.url()).await;
    let error = open(&state).await.unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Unreachable);
    let first = newest_connection(&replica);
    // Behind the name of a host there may be another server by now, so it is looked up again.
    assert_eq!(kind(open(&state).await), StateErrorKind::Unreachable);
    assert!(newest_connection(&replica) > first);
    replica.command(&["REPLICAOF", "NO", "ONE"]);
    until_it_works(&state).await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn forbidden_commands_are_denied() {
    let server = RedisServer::start();
    server.command(&["ACL", "SETUSER", "ann", "on", ">secret", "~*", "-@all"]);
    server.command(&["ACL", "SETUSER", "bob", "on", ">secret", "~*", "+@all", "-zadd"]);
    server.command(&["ACL", "SETUSER", "carl", "on", ">secret", "~elsewhere*", "+@all"]);
    server.command(&["ACL", "SETUSER", "dora", "on", ">secret", "~{interval-queue:*", "+@all", "-info"]);
    let at = |user: &str| server.url().replace("://", &format!("://{user}:secret@"));
    let wrong = server.url().replace("://", "://ann:hunter2@");
    let error = RedisState::connect(wrong).await.unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Denied);
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    for user in ["ann", "bob", "carl"] {
        let state = connect(&at(user)).await;
        assert!(!format!("{state:?}").contains("secret"));
        assert_eq!(kind(open(&state).await), StateErrorKind::Denied, "{user}");
        let read = state.apply(&mail(), Command::Read).await;
        assert_eq!(user == "bob", read.is_ok(), "{user}: {read:?}");
    }
    assert_eq!(server.command(&["DBSIZE"]), ["0"]);
    let state = connect(&at("dora")).await;
    open(&state).await.unwrap();
    assert_eq!(read(&state).await.unwrap().record.incarnation, "");
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn the_rights_that_the_readme_lists_are_enough() {
    let server = RedisServer::start();
    let readme = include_str!("../../README.md");
    let rights = readme.split_once("    ACL SETUSER ").unwrap().1.split_once("\n\n").unwrap().0;
    let words: Vec<&str> = ["ACL", "SETUSER"].into_iter().chain(rights.split_whitespace()).collect();
    server.command(&words);
    let state = connect(&server.url().replace("://", "://pacer:secret@")).await;
    open(&state).await.unwrap();
    let (mut a, mut b) = (Shard::new("a"), Shard::new("b"));
    a.lease = interval_queue_contract::Micros::from_millis(100);
    a.step(&state, 3).await.unwrap();
    tokio::time::sleep(Duration::from_millis(150)).await;
    b.step(&state, 1).await.unwrap();
    for what in [Change::Pause, Change::Resume, Change::Reset] {
        change(&state, what, b.memory).await.unwrap();
    }
    b.step(&state, 1).await.unwrap();
    b.waiting.clear();
    b.step(&state, 0).await.unwrap();
    assert_eq!(state.queues().await.unwrap(), [mail()]);
    assert_eq!(read(&state).await.unwrap().record.incarnation.len(), 40);
    server.command(&["DEL", "{interval-queue:mail}"]);
    b.step(&state, 1).await.unwrap();
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_server_that_wants_a_password_says_so() {
    let server = RedisServer::with_args(&["--requirepass", "secret"]);
    let error = RedisState::connect(server.url()).await.unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Denied, "{error:?}");
    let url = server.url().replace("://", "://:secret@");
    open(&connect(&url).await).await.unwrap();
}
