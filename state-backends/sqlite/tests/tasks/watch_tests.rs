//! Those who wait for work hear of it, from their own process and from others, and of nothing else.

use std::{path::Path, time::Duration};

use futures::StreamExt;
use interval_queue_contract::Changes;
use interval_queue_task_contract::{Command, Kind, Read, Reply, TaskStore};
use interval_queue_test_support::{Process, files::block_on};

use super::support::{Hand, add, mail, open, task};

const PATIENCE: Duration = Duration::from_secs(30);

async fn is_notified(changes: &mut Changes) -> bool {
    tokio::time::timeout(PATIENCE, changes.next()).await.is_ok_and(|notified| notified.is_some())
}

/// Whether nothing comes, for as long as anything takes.
async fn is_quiet(changes: &mut Changes) -> bool {
    tokio::time::timeout(Duration::from_millis(300), changes.next()).await.is_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handle_is_notified_once_of_own_and_other_tasks() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let (store, other) = (open(&path).await, open(&path).await);
    let mut changes = store.changes(&mail()).await.unwrap();
    assert!(is_quiet(&mut changes).await, "the queue is not there yet");
    for (n, by) in (0..).zip([&store, &other, &store, &other]) {
        by.apply(&mail(), add([task(n)])).await.unwrap();
        assert!(is_notified(&mut changes).await);
        assert!(is_quiet(&mut changes).await, "once is enough");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_and_other_queues_notify_no_watcher() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let (store, other) = (open(&path).await, open(&path).await);
    store.apply(&mail(), add([])).await.unwrap();
    let mut hands = [Hand::new(&store, 1), Hand::new(&other, 2)];
    for hand in &mut hands {
        hand.step(Vec::new(), 1).await;
    }
    let mut changes = store.changes(&mail()).await.unwrap();
    let elsewhere = interval_queue_contract::QueueName::new("elsewhere").unwrap();
    for n in 0..20 {
        for hand in &mut hands {
            hand.step(Vec::new(), 1).await;
        }
        other.apply(&elsewhere, add([task(n)])).await.unwrap();
    }
    assert!(is_quiet(&mut changes).await);
    other.apply(&mail(), add([task(1)])).await.unwrap();
    assert!(is_notified(&mut changes).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_can_take_no_more_is_notified() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let (store, other) = (open(&path).await, open(&path).await);
    let mut hand = Hand::new(&store, 1);
    hand.step(Vec::new(), 0).await;
    let mut changes = store.changes(&mail()).await.unwrap();
    for n in 0..5 {
        other.apply(&mail(), add([task(n)])).await.unwrap();
        assert!(is_notified(&mut changes).await);
        assert_eq!(hand.step(Vec::new(), 1).await.leased.len(), 1);
        assert!(is_quiet(&mut changes).await);
    }
    other.apply(&mail(), add([task(5)])).await.unwrap();
    assert!(is_notified(&mut changes).await, "a run may have to stop");
}

/// Waits for tasks and says when it sees one.
fn wait_for_tasks() {
    let mut orders = std::io::stdin().lines().map_while(Result::ok);
    let path = orders.next().unwrap();
    block_on(async {
        let store = open(Path::new(&path)).await;
        let mut changes = store.changes(&mail()).await.unwrap();
        println!("\nsays ready");
        let ready = Command::Read(Read::Ready(vec![Kind::default()]));
        for n in 0.. {
            assert!(is_notified(&mut changes).await);
            let seen = store.apply(&mail(), ready.clone()).await.unwrap();
            assert!(matches!(seen, Reply::Ready(_)));
            println!("\nsays {n}");
        }
    });
}

#[test]
fn another_process_is_woken() {
    const NAME: &str = "watch_tests::another_process_is_woken";
    if Process::is_copy() {
        return wait_for_tasks();
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let (sender, heard) = std::sync::mpsc::channel();
    let mut copy = Process::start(NAME, move |line| {
        if let Some(word) = line.strip_prefix("says ") {
            let _ = sender.send(word.to_owned());
        }
    });
    copy.tell(&path.display().to_string());
    assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), "ready");
    block_on(async {
        let store = open(&path).await;
        for n in 0..50 {
            store.apply(&mail(), add([task(n)])).await.unwrap();
            assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), n.to_string());
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_with_its_directory() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("place");
    for is_made in [false, true] {
        std::fs::create_dir(&place).unwrap();
        let store = open(&place.join("tasks.db")).await;
        if is_made {
            store.apply(&mail(), add([task(1)])).await.unwrap();
        }
        let mut changes = store.changes(&mail()).await.unwrap();
        std::fs::remove_dir_all(&place).unwrap();
        let end = async { while changes.next().await.is_some() {} };
        assert!(tokio::time::timeout(PATIENCE, end).await.is_ok(), "{is_made}");
    }
}

/// Notice of what closing does to the log would open the database again, and leave a log when the process ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_store_stays_closed_while_its_queues_are_watched() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let (store, log) = (open(&path).await, directory.path().join("tasks.db-wal"));
    let mut changes = store.changes(&mail()).await.unwrap();
    for n in 0..3 {
        store.apply(&mail(), add([task(n)])).await.unwrap();
        assert!(is_notified(&mut changes).await, "a command opens it again");
        assert!(log.exists());
        store.close().await.unwrap();
        assert!(is_quiet(&mut changes).await);
        assert!(!log.exists());
    }
}
