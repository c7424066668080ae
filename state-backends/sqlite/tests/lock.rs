//! Who has the database and does not give it back: others wait, are told, and go on when it is free.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use interval_queue_contract::{SharedState, StateErrorKind};
use interval_queue_sqlite::SqliteState;
use support::{Taker, assert_error, last_ticket, look, open_queue, other, queue, state_in};

const SHORT: Duration = Duration::from_millis(50);

#[tokio::test]
async fn a_database_held_by_another_ends_in_a_clear_error_and_heals() {
    let directory = tempfile::tempdir().unwrap();
    let (_, path) = state_in(directory.path()).await;
    let state = SqliteState::builder(&path).lock_timeout(SHORT).open().await.unwrap();
    let mut taker = Taker::new(&state, "shard");
    assert_eq!(taker.take().await.unwrap(), 1);

    let holder = other(&path);
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    for error in [taker.take().await.unwrap_err(), open_queue(&state).await.unwrap_err()] {
        assert_error(&error, StateErrorKind::Unreachable, &path, "was held by another process for 50ms");
        assert!(error.is_retryable());
    }
    // Who only looks waits for nobody, and opening a database that is in order writes nothing.
    assert_eq!(last_ticket(&state).await, 1);
    assert_eq!(state.queues().await.unwrap(), [queue("mail")]);
    SqliteState::builder(&path).lock_timeout(SHORT).open().await.unwrap();

    holder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(taker.take().await.unwrap(), 2, "what failed took nothing");
}

#[tokio::test]
async fn a_command_waits_for_the_database_while_the_runtime_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = state_in(directory.path()).await;
    let holder = other(&path);
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut taker = Taker::new(&state, "shard");
    let taking = tokio::spawn(async move { taker.take().await });
    // The only thread of this runtime is free all the time, for looks, too.
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert_eq!(last_ticket(&state).await, 0);
    }
    assert!(!taking.is_finished());
    holder.execute_batch("COMMIT").unwrap();
    assert_eq!(taking.await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn commands_that_wait_for_each_other_do_not_wait_one_time_out_each() {
    let directory = tempfile::tempdir().unwrap();
    let (_, path) = state_in(directory.path()).await;
    let patience = Duration::from_millis(500);
    let state = SqliteState::builder(&path).lock_timeout(patience).open().await.unwrap();
    let holder = other(&path);
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let began = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let takes: Vec<_> = (0..20)
        .map(|n| {
            let mut taker = Taker::new(&state, &format!("shard {n}"));
            tokio::spawn(async move { taker.take().await })
        })
        .collect();
    for take in takes {
        assert_eq!(take.await.unwrap().unwrap_err().kind(), StateErrorKind::Unreachable);
    }
    let took = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap() - began;
    assert!(took < patience * 10, "twenty commands one after the other took {took:?}");
}

#[tokio::test]
async fn a_command_nobody_waits_for_any_more_leaves_the_database_free() {
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = state_in(directory.path()).await;
    for _ in 0..50 {
        let mut taker = Taker::new(&state, "given up");
        let _ = tokio::time::timeout(Duration::from_micros(50), taker.take()).await;
    }
    let mut taker = Taker::new(&state, "shard");
    let before = last_ticket(&state).await;
    assert!(taker.take().await.unwrap() > before.saturating_sub(1));
    other(&path).execute_batch("BEGIN IMMEDIATE; ROLLBACK").unwrap();
    assert!(look(&state).await.unwrap().is_some());
}

#[tokio::test]
async fn who_looks_for_long_does_not_stop_the_others_and_the_log_shrinks_again() {
    let directory = tempfile::tempdir().unwrap();
    let (_, path) = state_in(directory.path()).await;
    let builder = SqliteState::builder(&path).durability(interval_queue_sqlite::Durability::Relaxed);
    let state = builder.open().await.unwrap();
    let log = || std::fs::metadata(directory.path().join("queues.db-wal")).unwrap().len();
    let reader = other(&path);
    reader.execute_batch("BEGIN; SELECT * FROM interval_queue").unwrap();
    let mut taker = Taker::new(&state, "shard");
    for _ in 0..2_500 {
        taker.take().await.unwrap();
    }
    assert!(log() > 5 << 20, "{}", log());
    reader.execute_batch("ROLLBACK").unwrap();
    for _ in 0..2_500 {
        taker.take().await.unwrap();
    }
    assert!(log() <= 5 << 20, "{}", log());
}

#[tokio::test]
async fn who_has_no_patience_at_all_makes_a_database_and_uses_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("queues.db");
    let state = SqliteState::builder(&path).lock_timeout(Duration::ZERO).open().await.unwrap();
    open_queue(&state).await.unwrap();
    assert!(look(&state).await.unwrap().is_some());
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_that_looks_keeps_few_files_open() {
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = state_in(directory.path()).await;
    let looks: Vec<_> = (0..10_000)
        .map(|_| {
            let state = state.clone();
            tokio::spawn(async move { look(&state).await.unwrap().is_some() })
        })
        .collect();
    let mut most = 0;
    while looks.iter().any(|look| !look.is_finished()) {
        let files = std::fs::read_dir("/proc/self/fd").unwrap();
        let ours = |file: std::path::PathBuf| {
            std::fs::read_link(file).is_ok_and(|file| file.starts_with(path.parent().unwrap()))
        };
        most = most.max(files.filter(|file| file.as_ref().is_ok_and(|file| ours(file.path()))).count());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for look in looks {
        assert!(look.await.unwrap());
    }
    assert!(most <= 100, "{most} files are open");
}
