//! Real processes that open and close one database all the time, and find it deleted.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{fs, time::Duration};

use interval_queue_contract::{StateError, StateErrorKind};
use interval_queue_sqlite::SqliteState;
use interval_queue_test_support::Process;
use support::{
    InFile, Sqlite, Taker, Worker, block_on, is_whole, last_ticket, open_queue, orders, tell,
    tickets_of_crowd,
};

/// What a copy of this program does: it opens the database for every ticket, whatever becomes of it
/// meanwhile.
fn open_and_take() {
    let (path, shard, takes) = orders();
    block_on(async {
        let mut kept = None;
        for take in 0..takes {
            // Each second one on the connection of the one before.
            let state = match kept.take() {
                Some(state) => state,
                None => insist(async || Sqlite::open_at(path.as_ref(), Duration::from_secs(60)).await)
                    .await
                    .unwrap(),
            };
            insist(async || open_queue(&state).await).await.unwrap();
            match Taker::new(&state, &format!("{shard} {take}")).take().await {
                Ok(ticket) => tell(ticket),
                // It was deleted since, or just then.
                Err(error) => {
                    assert!(error.is_retryable() || error.kind() == StateErrorKind::NotFound, "{error}");
                }
            }
            kept = (take % 2 == 0).then_some(state);
        }
    });
}

/// Tries again what may pass by itself, as shards do.
async fn insist<T>(mut attempt: impl AsyncFnMut() -> Result<T, StateError>) -> Result<T, StateError> {
    for _ in 0..500 {
        match attempt().await {
            Err(error) if error.is_retryable() => tokio::time::sleep(Duration::from_millis(10)).await,
            result => return result,
        }
    }
    attempt().await
}

#[test]
fn processes_that_open_and_close_all_the_time_disturb_nobody() {
    const NAME: &str = "processes_that_open_and_close_all_the_time_disturb_nobody";
    if Process::is_copy() {
        return open_and_take();
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("queues.db");
    assert_eq!(tickets_of_crowd(NAME, &path, 6, 50), (1..=300).collect::<Vec<_>>());
    assert!(is_whole(&path));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "who closes last takes the log away");
}

#[test]
fn a_database_deleted_at_any_moment_is_made_anew_and_whole() {
    const NAME: &str = "a_database_deleted_at_any_moment_is_made_anew_and_whole";
    const TAKES: u64 = 120;
    if Process::is_copy() {
        return open_and_take();
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("queues.db");
    let mut workers: Vec<_> =
        (0..4).map(|n| Worker::start(NAME, &path, &format!("shard {n}"), TAKES)).collect();
    for round in 0..12 {
        for _ in 0..10 + round {
            workers[round % 4].tickets.recv().unwrap();
        }
        let _ = fs::remove_file(&path);
    }
    workers.iter_mut().for_each(|worker| worker.process.wait());
    assert!(is_whole(&path));
    block_on(async {
        let state = SqliteState::open(&path).await.unwrap();
        let last = last_ticket(&state).await;
        assert_eq!(Taker::new(&state, "last").take().await.unwrap(), last + 1);
    });
}
