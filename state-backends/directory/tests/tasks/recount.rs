//! Counts after files of tasks, or rows of the index, are removed by hand.
#![cfg(unix)]

use std::fs;

use interval_queue_task_contract::{Change, Command, Corrected, Kind, Reply, State, TaskStore};

use super::support::{add, agree, all, count, file, id, mail, open, overview, task};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removed_files_and_rows_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("jobs")).await;
    store.apply(&mail(), add((0..9).map(task))).await.unwrap();
    fs::remove_file(file(store.path(), "ready", id(0))).unwrap();
    // A file that is gone is a task that was cancelled and purged.
    let counted = overview(&store).await;
    assert_eq!(
        (count(&counted, State::Ready), count(&counted, State::Purged), counted.miscounted),
        (8, 1, false)
    );
    assert_eq!(recount(&store).await, []);

    let index = rusqlite::Connection::open(store.path().join("index.db")).unwrap();
    let last = "DELETE FROM interval_queue_task WHERE id = ?1";
    for n in [1, 2] {
        fs::remove_file(file(store.path(), "ready", id(n))).unwrap();
        assert_eq!(index.execute(last, [id(n).to_string()]), Ok(1));
    }
    assert!(overview(&store).await.miscounted);
    let corrected = Corrected { kind: Kind::default(), state: State::Ready, before: 8, counted: 6 };
    assert_eq!(recount(&store).await, [corrected]);
    let counted = overview(&store).await;
    assert_eq!((count(&counted, State::Ready), counted.miscounted), (6, false));
    assert_eq!(all(&store, &mail()).await.len(), 7);
    agree(&store).await;
}

async fn recount(store: &dyn TaskStore) -> Vec<Corrected> {
    match store.apply(&mail(), Command::Change(Change::Recount)).await.unwrap() {
        Reply::Recounted(recounted) => recounted.corrected,
        other => panic!("{other:?}"),
    }
}
