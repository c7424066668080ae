//! Each kind of place: TLS, a socket, sentinels, a cluster.

use interval_queue_contract::{Change, Memory, SharedState, StateErrorKind};
use interval_queue_redis::RedisState;
use interval_queue_test_support::RedisServer;

use crate::common::*;

/// A few commands that read and write all keys.
async fn works(state: &RedisState) {
    open(state).await.unwrap();
    let (mut a, mut b) = (Shard::new("a"), Shard::new("b"));
    let stepped = a.step(state, 2).await.unwrap();
    assert_eq!(stepped.grants.len(), 1);
    assert_eq!(b.step(state, 1).await.unwrap().taken.unwrap().first.get(), 3);
    assert_eq!(read(state).await.unwrap().record.shards.len(), 2);
    let mut changes = state.changes(&mail()).await.unwrap();
    change(state, Change::Resume, Memory::default()).await.unwrap();
    expect_notification(&mut changes).await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_socket() {
    let server = RedisServer::with_args(&["--unixsocket", "s"]);
    let socket = server.dir().join("s");
    let state = RedisState::connect(format!("redis+unix://{}?db=3", socket.display())).await.unwrap();
    works(&state).await;
    assert_eq!(server.command(&["DBSIZE"]), ["0"], "it is in database 3");
}

#[cfg(feature = "tls")]
mod tls {
    use super::*;

    #[tokio::test]
    #[ignore = "needs redis-server: scripts/test runs it"]
    async fn with_a_private_authority() {
        let server = RedisServer::with_tls();
        let url = format!("{}?ca={}", server.url(), server.ca().display());
        works(&RedisState::connect(url).await.unwrap()).await;
    }

    #[tokio::test]
    #[ignore = "needs redis-server: scripts/test runs it"]
    async fn a_certificate_that_nobody_vouches_for_is_refused() {
        let server = RedisServer::with_tls();
        let error = RedisState::connect(server.url()).await.unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Unreachable, "{error:?}");
        let wrong_name = server.url().replace("localhost", "127.0.0.2");
        let url = format!("{wrong_name}?ca={}", server.ca().display());
        assert!(RedisState::connect(url).await.is_err());
    }

    #[tokio::test]
    async fn a_missing_file_of_certificates_is_named() {
        let error = RedisState::connect("rediss://localhost?ca=/nowhere/ca.pem").await.unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Invalid);
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("/nowhere/ca.pem"), "{source}");
    }
}

#[cfg(feature = "sentinel")]
mod sentinel {
    use super::*;

    #[tokio::test]
    #[ignore = "needs redis-server: scripts/test runs it"]
    async fn it_follows_the_master() {
        let mut master = RedisServer::start();
        let replica = RedisServer::replica_of(&master);
        let sentinel = RedisServer::sentinel_of(&master);
        // A sentinel learns of replicas from the master, and replaces a master only by one it knows.
        sentinel.wait_until("the sentinel knows the replica", |sentinel| {
            let known =
                sentinel.command(&["SENTINEL", "REPLICAS", interval_queue_test_support::SENTINEL_MASTER]);
            known.contains(&replica.port().to_string())
        });
        let state = RedisState::connect(sentinel.url()).await.unwrap();
        works(&state).await;
        let mut changes = state.changes(&mail()).await.unwrap();
        master.kill();
        assert_eq!(kind(open(&state).await), StateErrorKind::Unreachable);
        until_it_works(&state).await;
        expect_notification(&mut changes).await;
        assert!(replica.command(&["EXISTS", "{interval-queue:mail}"]) == ["1"]);
    }

    #[tokio::test]
    #[ignore = "needs redis-server: scripts/test runs it"]
    async fn an_unknown_master_is_an_error() {
        let master = RedisServer::start();
        let sentinel = RedisServer::sentinel_of(&master);
        let url = sentinel.url().replace("the-master", "another");
        let error = RedisState::connect(url).await.unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Unreachable);
        assert!(error.to_string().contains("another"), "{error}");
    }
}

#[cfg(feature = "cluster")]
mod cluster {
    use interval_queue_contract::QueueName;

    use super::*;

    #[tokio::test]
    #[ignore = "needs redis-server: scripts/test runs it"]
    async fn queues_live_on_all_its_nodes() {
        let nodes = RedisServer::cluster(2);
        let state = RedisState::connect(nodes[0].url()).await.unwrap();
        works(&state).await;
        let mut names: Vec<_> = (0..20).map(|n| QueueName::new(format!("queue {n}")).unwrap()).collect();
        for name in &names {
            state.apply(name, opening(1000)).await.unwrap();
        }
        names.push(mail());
        names.sort();
        assert_eq!(state.queues().await.unwrap(), names);
        let mut watched = Vec::new();
        for name in &names {
            watched.push(state.changes(name).await.unwrap());
        }
        for node in &nodes {
            node.command(&["SCRIPT", "FLUSH"]);
            assert_ne!(node.command(&["DBSIZE"]), ["0"]);
        }
        for name in &names {
            state.apply(name, opening(2000)).await.unwrap();
        }
        for changes in &mut watched {
            expect_notification(changes).await;
        }
    }

    #[tokio::test]
    #[ignore = "needs redis-server: scripts/test runs it"]
    async fn it_works_again_after_a_restart() {
        let mut nodes = RedisServer::cluster(1);
        let state = connect(nodes[0].url()).await;
        works(&state).await;
        nodes[0].kill();
        let kind = kind(open(&state).await);
        assert!(matches!(kind, StateErrorKind::Unreachable | StateErrorKind::TimedOut), "{kind:?}");
        nodes[0].start_again();
        until_it_works(&state).await;
    }
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_node_of_a_cluster_is_no_server_of_its_own() {
    let nodes = RedisServer::cluster(2);
    let mut refused = 0;
    for node in &nodes {
        let state = RedisState::connect(format!("redis://127.0.0.1:{}", node.port())).await.unwrap();
        refused +=
            u32::from(open(&state).await.is_err_and(|error| error.kind() == StateErrorKind::Unreachable));
    }
    assert_eq!(refused, 1);
}
