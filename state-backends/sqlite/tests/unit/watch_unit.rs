//! Reads that end late, and whether somebody waits for work.

use super::*;

#[tokio::test]
async fn a_late_read_notifies_of_no_older_number() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::builder(directory.path().join("tasks.db")).open().await.unwrap();
    let watchers = Watchers::new(&store);
    let queue = QueueName::new("mail").unwrap();
    let (sender, mut changes) = tokio::sync::watch::channel(());
    locked(&watchers.queues)
        .insert(queue.clone(), Watched { last_seen: Some(4), sender, full: HashSet::new() });
    let mut is_notified = || {
        let is_notified = changes.has_changed().unwrap();
        changes.mark_unchanged();
        is_notified
    };

    let late = watchers.snapshot();
    watchers.notify_if_new(&queue, 5);
    assert!(is_notified());
    watchers.compare(&late, Some(vec![Some(4)]));
    assert!(!is_notified());
    watchers.compare(&watchers.snapshot(), Some(vec![Some(5)]));
    assert!(!is_notified());
    watchers.compare(&watchers.snapshot(), Some(vec![Some(6)]));
    assert!(is_notified());
}

#[tokio::test]
async fn full_workers_alone_are_no_demand() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::builder(directory.path().join("tasks.db")).open().await.unwrap();
    let watchers = Arc::new(Watchers::new(&store));
    let queues = ["mail", "other"].map(|name| QueueName::new(name).unwrap());
    // A step of a worker that got no task.
    let step = |queue: usize, worker: u128, want: u32| {
        let worker = WorkerId::new(uuid::Uuid::from_u128(worker));
        let step = Step { want, ..Step::first(worker, [], interval_queue_contract::Micros::ZERO) };
        watchers.stepped(&queues[queue], &step, &Stepped::default());
    };
    let full = |queue: usize, worker: u128| {
        let worker = WorkerId::new(uuid::Uuid::from_u128(worker));
        watchers.update_full(&queues[queue], |full| full.insert(worker));
    };
    let is_there = || watchers.demand.is_there();

    let first = watchers.watch(&queues[0]).await.unwrap();
    assert!(is_there(), "nothing is known of the worker yet");
    full(0, 1);
    assert!(!is_there());
    step(0, 1, 0);
    assert!(!is_there(), "a step that requested no task shows nothing");
    let second = watchers.watch(&queues[0]).await.unwrap();
    assert!(is_there(), "a follower");
    full(0, 1);
    assert!(is_there(), "the follower still is");
    drop(second);
    full(0, 1);
    assert!(!is_there());
    let other = watchers.watch(&queues[1]).await.unwrap();
    assert!(is_there(), "a worker of another queue");
    full(1, 2);
    assert!(!is_there());
    step(1, 2, 3);
    assert!(is_there(), "it got less than it wanted");
    drop(other);
    assert!(!is_there());
    drop(first);
    assert!(!is_there());
}
