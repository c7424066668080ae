//! G8: a call that looks at a queue or changes it for all shards tries again what may pass by itself, and
//! ends in time.

use std::time::Duration;

use interval_queue::{Error, ErrorKind, IntervalQueue, MaxRunning, MemoryState, Reason};
use interval_queue_conformance::Faulty;
use tokio::time::Instant;

use crate::common::{ms, open};

const CALLS: [&str; 8] =
    ["pause", "resume", "hold", "reset", "set_interval", "set_max_running", "status", "open"];

/// The call of that name. What went wrong, if anything did.
async fn call(name: &str, queue: &IntervalQueue) -> Result<(), String> {
    let outcome: Result<(), Error> = match name {
        "pause" => queue.pause().await,
        "resume" => queue.resume().await,
        "hold" => queue.hold(ms(1)).await,
        "reset" => queue.reset().await,
        "set_interval" => queue.set_interval(ms(20)).await,
        "set_max_running" => queue.set_max_running(MaxRunning::AtMost(2)).await,
        _ => match queue.status().await.reason {
            Reason::StateUnreachable { error, .. } => return Err(error),
            _ => Ok(()),
        },
    };
    outcome.map_err(|error| error.to_string())
}

/// The same over that state; another shard of the queue is opened on it, too.
async fn call_on(name: &str, queue: &IntervalQueue, state: &Faulty) -> Result<(), String> {
    if name == "open" {
        let opened = IntervalQueue::builder("test").interval(ms(20)).open(state.clone()).await;
        return opened.map(drop).map_err(|error| error.to_string());
    }
    call(name, queue).await
}

#[tokio::test(start_paused = true)]
async fn one_failure_fails_no_call() {
    let state = Faulty::new(MemoryState::new());
    let queue = open(state.clone(), ms(20)).await;
    for name in CALLS {
        for lose in [Faulty::lose_next_request, Faulty::lose_next_reply] {
            lose(&state);
            let before = state.counts().total();
            assert_eq!(call_on(name, &queue, &state).await, Ok(()), "{name}");
            assert_eq!(state.counts().total() - before, 2, "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_call_ends_while_the_state_is_away() {
    let state = Faulty::new(MemoryState::new());
    let queue = open(state.clone(), ms(20)).await;
    for name in CALLS {
        for is_silent in [false, true] {
            state.change(|faults| {
                faults.outage = !is_silent;
                faults.delay_before = if is_silent { Duration::from_secs(3_600) } else { Duration::ZERO };
            });
            let (called, before) = (Instant::now(), state.counts().total());
            let error = call_on(name, &queue, &state).await.unwrap_err();
            let (took, tries) = (called.elapsed(), state.counts().total() - before);
            let (least, most) = if is_silent { (9_900, 12_000) } else { (1_000, 2_000) };
            assert!(ms(least) <= took && took <= ms(most), "{name}: {took:?}");
            let text = if is_silent { "did not answer" } else { "the state is cut off" };
            assert!(error.contains(text), "{name}: {error}");
            assert!(is_silent || (4..20).contains(&tries), "{name}: {tries} tries");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lasting_error_is_returned_at_once() {
    let state = Faulty::new(MemoryState::new());
    let queue = open(state.clone(), ms(20)).await;
    let (called, before) = (Instant::now(), state.counts().total());
    let error = queue.set_interval(Duration::ZERO).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(state.counts().total() - before <= 1 && called.elapsed() == Duration::ZERO);
}

#[cfg(all(unix, feature = "redis", feature = "postgres"))]
mod servers {
    use interval_queue::SharedState;
    use interval_queue_postgres::PostgresState;
    use interval_queue_redis::RedisState;
    use interval_queue_test_support::{PostgresServer, RedisServer};

    use super::*;

    /// All calls, each after something was done to the connection that the state has.
    async fn all_over(state: impl SharedState, mut harm: impl FnMut()) {
        let state = Faulty::new(state);
        let queue = open(state.clone(), ms(20)).await;
        for name in CALLS {
            harm();
            assert_eq!(call_on(name, &queue, &state).await, Ok(()), "{name}");
        }
    }

    #[tokio::test]
    #[ignore = "needs redis-server: scripts/test runs it"]
    async fn redis_closes_what_idles() {
        let server = RedisServer::start();
        let state = RedisState::connect(server.url()).await.unwrap();
        server.command(&["CONFIG", "SET", "timeout", "1"]);
        // Whoever asks is one of them.
        let is_alone = || server.command(&["CLIENT", "LIST"]).concat().lines().count() == 1;
        all_over(state, || {
            while !is_alone() {
                std::thread::sleep(ms(50));
            }
        })
        .await;
    }

    #[tokio::test]
    #[ignore = "needs redis-server: scripts/test runs it"]
    async fn redis_is_restarted() {
        let mut server = RedisServer::with_args(&["--appendonly", "yes"]);
        let state = RedisState::connect(server.url()).await.unwrap();
        all_over(state, || server.restart()).await;
    }

    #[tokio::test]
    #[ignore = "needs postgresql: scripts/test runs it"]
    async fn postgres_ends_the_sessions() {
        const OTHERS: &str =
            "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        let server = PostgresServer::start();
        let state = PostgresState::connect(server.url()).await.unwrap();
        all_over(state, || drop(server.psql(&format!("SELECT pg_terminate_backend(pid) {OTHERS}")))).await;
    }

    #[tokio::test]
    #[ignore = "needs postgresql: scripts/test runs it"]
    async fn postgres_is_restarted() {
        let mut server = PostgresServer::start();
        let state = PostgresState::connect(server.url()).await.unwrap();
        all_over(state, || server.restart()).await;
    }
}
