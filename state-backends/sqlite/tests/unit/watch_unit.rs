//! A look that ends late, after this process has stored something newer.

use super::*;

#[tokio::test]
async fn a_late_read_notifies_of_no_older_number() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::builder(directory.path().join("tasks.db")).open().await.unwrap();
    let watchers = Watchers::new(&store);
    let queue = QueueName::new("mail").unwrap();
    let (sender, mut changes) = tokio::sync::watch::channel(());
    locked(&watchers.queues).insert(queue.clone(), Watched { last_seen: Some(4), sender });
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
