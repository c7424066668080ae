//! An index that an older program has made.

use interval_queue_contract::Micros;
use interval_queue_task_contract::{Command, Kind, Read, Reply, TaskStore};

use super::support::{Hand, add, agree, all, mail, open, task};

#[tokio::test]
async fn an_older_index_is_brought_up_to_date_and_nothing_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs");
    let store = open(&path).await;
    store.apply(&mail(), add([task(1), task(2)])).await.unwrap();
    drop(store);
    let undo = "DROP TABLE interval_queue_task_times; ALTER TABLE interval_queue_task_worker DROP COLUMN room; \
                ALTER TABLE interval_queue_task_worker DROP COLUMN at_least; \
                DROP TABLE interval_queue_task_event; ALTER TABLE interval_queue_task_queue DROP COLUMN followed; \
                UPDATE interval_queue_task_schema SET version = 1; UPDATE directory_index SET version = 1";
    rusqlite::Connection::open(path.join("index.db")).unwrap().execute_batch(undo).unwrap();
    let store = open(&path).await;
    assert_eq!(all(&store, &mail()).await.len(), 2);
    assert_eq!(Hand::new(&store, 1).step(Vec::new(), 5).await.leased.len(), 2);
    let times = Read::Times { kind: Kind::default(), from: Micros::ZERO };
    let Reply::Times(times) = store.apply(&mail(), Command::Read(times)).await.unwrap() else {
        panic!("no times")
    };
    assert_eq!(times[0].wait.number(), 2);
    agree(&store).await;
}
