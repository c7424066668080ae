//! Files that are deleted or replaced while they are open: it is noticed, and the queue heals.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{fs, path::Path};

use interval_queue_contract::{SharedState, StateErrorKind};
use interval_queue_sqlite::SqliteState;
use support::{
    Taker, assert_error, is_whole, last_ticket, look, open_queue, other, queue, state_in, until_closed,
};

fn delete(path: &Path, endings: &[&str]) {
    for ending in endings {
        fs::remove_file(format!("{}{ending}", path.display())).unwrap();
    }
}

#[tokio::test]
async fn a_database_that_was_deleted_is_made_anew_by_who_comes_first() {
    for endings in [["", "-wal", "-shm"].as_slice(), &[""], &["", "-shm"], &["", "-wal"]] {
        let directory = tempfile::tempdir().unwrap();
        let (state, path) = state_in(directory.path()).await;
        let idle = SqliteState::open(&path).await.unwrap();
        assert_eq!(Taker::new(&state, "shard").take().await.unwrap(), 1);
        assert_eq!(last_ticket(&idle).await, 1);

        delete(&path, endings);
        // Who looks makes nothing.
        assert_eq!(look(&state).await.unwrap(), None);
        assert_eq!(state.queues().await.unwrap(), []);
        assert!(!path.exists());
        // There is no such queue any more, and the attempt stores none.
        let error = Taker::new(&state, "shard").take().await.unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::NotFound);
        assert_eq!(state.queues().await.unwrap(), []);

        // While another one has the deleted files still open.
        open_queue(&state).await.unwrap();
        assert_eq!(Taker::new(&state, "shard").take().await.unwrap(), 1);
        let fresh = SqliteState::open(&path).await.unwrap();
        assert_eq!(Taker::new(&fresh, "fresh").take().await.unwrap(), 2);
        assert_eq!(Taker::new(&idle, "idle").take().await.unwrap(), 3, "all on the same file");
        drop((idle, state, fresh));
        assert!(is_whole(&path));
        assert_eq!(last_ticket(&SqliteState::open(&path).await.unwrap()).await, 3);
    }
}

#[tokio::test]
async fn a_deleted_database_is_recreated_while_others_have_it_open() {
    let directory = tempfile::tempdir().unwrap();
    let (idle, path) = state_in(directory.path()).await;
    Taker::new(&idle, "shard").take().await.unwrap();
    delete(&path, &[""]);
    let (fresh, _) = state_in(directory.path()).await;
    assert_eq!(Taker::new(&fresh, "fresh").take().await.unwrap(), 1);
    assert_eq!(Taker::new(&idle, "idle").take().await.unwrap(), 2);
    assert_eq!((last_ticket(&idle).await, last_ticket(&fresh).await), (2, 2));
    drop((idle, fresh));
    assert!(is_whole(&path));
}

#[tokio::test]
async fn a_deleted_log_of_a_single_process_loses_nothing() {
    for endings in [["-wal", "-shm"].as_slice(), &["-wal"], &["-shm"]] {
        let directory = tempfile::tempdir().unwrap();
        let (state, path) = state_in(directory.path()).await;
        let mut taker = Taker::new(&state, "shard");
        for ticket in 1..=3 {
            assert_eq!(taker.take().await.unwrap(), ticket);
        }
        delete(&path, endings);
        assert_eq!(taker.take().await.unwrap(), 4, "{endings:?}");
        assert_eq!(last_ticket(&SqliteState::open(&path).await.unwrap()).await, 4);
        assert!(is_whole(&path));
    }
}

#[tokio::test]
async fn a_replaced_database_is_never_mixed_with_the_old_log() {
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = state_in(directory.path()).await;
    assert_eq!(Taker::new(&state, "shard").take().await.unwrap(), 1);
    assert_eq!(last_ticket(&state).await, 1);

    let elsewhere = tempfile::tempdir().unwrap();
    let (copy, from) = state_in(elsewhere.path()).await;
    for ticket in 1..=10 {
        assert_eq!(Taker::new(&copy, &format!("shard {ticket}")).take().await.unwrap(), ticket);
    }
    drop(copy);
    // Closed for good, so that all of it is in the one file.
    until_closed(&from).await;
    let replace = || {
        fs::copy(&from, directory.path().join("copy")).unwrap();
        fs::rename(directory.path().join("copy"), &path).unwrap();
    };

    replace();
    let good = fs::read(&path).unwrap();
    for _ in 0..2 {
        let error = Taker::new(&state, "shard").take().await.unwrap_err();
        assert_error(&error, StateErrorKind::Damaged, &path, "remove these two");
        assert_error(&look(&state).await.unwrap_err(), StateErrorKind::Damaged, &path, "remove these two");
    }
    assert_eq!(fs::read(&path).unwrap(), good, "left as it is");

    delete(&path, &["-wal", "-shm"]);
    replace();
    assert_eq!(last_ticket(&state).await, 10);
    assert_eq!(Taker::new(&state, "shard").take().await.unwrap(), 11);
    assert!(is_whole(&path));
}

#[tokio::test]
async fn tables_that_were_dropped_are_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = state_in(directory.path()).await;
    assert!(look(&state).await.unwrap().is_some());
    other(&path).execute_batch("DROP TABLE interval_queue; DROP TABLE interval_queue_schema").unwrap();
    assert_eq!(look(&state).await.unwrap(), None);
    assert_eq!(state.queues().await.unwrap(), []);
    open_queue(&state).await.unwrap();
    assert_eq!(state.queues().await.unwrap(), [queue("mail")]);
}

#[tokio::test]
async fn a_deleted_log_of_several_processes_heals() {
    for endings in [["-wal", "-shm"].as_slice(), &["-wal"], &["-shm"]] {
        let directory = tempfile::tempdir().unwrap();
        let (state, path) = state_in(directory.path()).await;
        let other = SqliteState::open(&path).await.unwrap();
        for ticket in 1..=3 {
            assert_eq!(Taker::new(&state, &format!("shard {ticket}")).take().await.unwrap(), ticket);
        }
        let (mut first, mut second) = (Taker::new(&state, "first"), Taker::new(&other, "second"));
        delete(&path, endings);
        // Each may have to wait for the other to notice. Then what was in the log is lost, or nothing is.
        for _ in 0..2 {
            for taker in [&mut first, &mut second] {
                if let Err(error) = taker.take().await {
                    assert!(error.is_retryable() || error.kind() == StateErrorKind::NotFound, "{error}");
                }
            }
        }
        open_queue(&state).await.unwrap();
        let last = last_ticket(&state).await;
        assert_eq!(first.take().await.unwrap(), last + 1, "{endings:?}");
        assert_eq!(second.take().await.unwrap(), last + 2, "both on the same file");
        assert!(is_whole(&path));
        drop((first, second, state, other));
        assert_eq!(last_ticket(&SqliteState::open(&path).await.unwrap()).await, last + 2);
        assert!(is_whole(&path));
    }
}
