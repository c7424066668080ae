//! Those who hold the database for long, and crowds that look at it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use support::{InFile, Sqlite, Taker, look, open_queue, other, state_in};

#[tokio::test]
async fn a_current_database_opens_while_another_process_holds_it() {
    let directory = tempfile::tempdir().unwrap();
    let (_, path) = state_in(directory.path()).await;
    let _held = Sqlite::hold(&path);
    Sqlite::open_at(&path, Duration::from_millis(50)).await.unwrap();
}

#[tokio::test]
async fn a_long_read_blocks_nobody_and_the_log_shrinks_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let (_, path) = state_in(directory.path()).await;
    let state = Sqlite::open_at(&path, Duration::from_secs(5)).await.unwrap();
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
async fn a_lock_timeout_of_zero_creates_and_uses_a_database() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("queues.db");
    let state = Sqlite::open_at(&path, Duration::ZERO).await.unwrap();
    open_queue(&state).await.unwrap();
    assert!(look(&state).await.unwrap().is_some());
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_concurrent_reads_keep_few_files_open() {
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
