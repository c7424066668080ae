//! Watching a file: notifications however the file is replaced, and what is left when nobody watches.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::{path::Path, time::Duration};

use interval_queue_contract::SharedState;
use interval_queue_json_file::JsonFileState;
use support::{open_queue, queue};

#[cfg(not(feature = "watch"))]
#[tokio::test]
async fn without_the_feature_it_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let (state, _) = support::state_in(directory.path()).await;
    let error = state.changes(&queue("mail")).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), interval_queue_contract::StateErrorKind::Unsupported);
    assert!(error.to_string().contains("\"json-file-watch\""), "{error}");
}

#[cfg(feature = "watch")]
mod watch {
    use std::fs;

    use futures::StreamExt;
    use interval_queue_contract::{Change, Changes, Command, Memory, QueueName, StateErrorKind};
    use interval_queue_json_file::{JsonFileStore, Replacement};
    use tokio::time::timeout;

    use super::*;

    const NOTIFY_TIMEOUT: Duration = Duration::from_secs(60);

    async fn expect_notification(changes: &mut Changes) {
        timeout(NOTIFY_TIMEOUT, changes.next())
            .await
            .expect("nobody was notified")
            .expect("the stream ended");
    }

    async fn is_notified_soon(changes: &mut Changes) -> bool {
        timeout(Duration::from_millis(300), changes.next()).await.is_ok()
    }

    async fn change(state: &JsonFileState, change: Change) {
        state.apply(&queue("mail"), Command::Change(change, Memory::default())).await.unwrap();
    }

    async fn opened(path: &Path, replacement: Replacement) -> JsonFileState {
        support::opened(JsonFileStore::builder(path).replacement(replacement)).await.unwrap()
    }

    #[tokio::test]
    async fn changes_in_place_and_by_rename_are_notified() {
        for replacement in [Replacement::InPlace, Replacement::Rename] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("state.json");
            let (state, other) = (opened(&path, replacement).await, opened(&path, replacement).await);
            let mut changes = state.changes(&queue("mail")).await.unwrap();
            open_queue(&other).await.unwrap();
            expect_notification(&mut changes).await;
            for _ in 0..5 {
                change(&other, Change::Pause).await;
                expect_notification(&mut changes).await;
                change(&other, Change::Resume).await;
                expect_notification(&mut changes).await;
            }
        }
    }

    #[tokio::test]
    async fn a_file_deleted_or_replaced_by_hand_is_notified() {
        let directory = tempfile::tempdir().unwrap();
        let (state, path) = support::state_in(directory.path()).await;
        change(&state, Change::Pause).await;
        let mut changes = state.changes(&queue("mail")).await.unwrap();
        let text = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        expect_notification(&mut changes).await;
        fs::write(directory.path().join("edited"), &text).unwrap();
        fs::rename(directory.path().join("edited"), &path).unwrap();
        expect_notification(&mut changes).await;
        fs::write(&path, "{").unwrap();
        assert!(!is_notified_soon(&mut changes).await, "what is spoilt says nothing");
    }

    #[tokio::test]
    async fn other_queues_of_the_file_are_not_notified() {
        let directory = tempfile::tempdir().unwrap();
        let (state, _) = support::state_in(directory.path()).await;
        let mut changes = state.changes(&queue("other")).await.unwrap();
        for _ in 0..20 {
            change(&state, Change::Pause).await;
        }
        assert!(!is_notified_soon(&mut changes).await);
    }

    #[tokio::test]
    async fn the_end_of_the_directory_is_the_end_of_the_watching() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("place");
        fs::create_dir(&place).unwrap();
        let (state, _) = support::state_in(&place).await;
        let mut changes = state.changes(&queue("mail")).await.unwrap();
        fs::remove_dir_all(&place).unwrap();
        while timeout(NOTIFY_TIMEOUT, changes.next()).await.unwrap().is_some() {}
        let error = state.changes(&queue("mail")).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::NotFound, "{error:?}");
        fs::create_dir(&place).unwrap();
        let mut changes = state.changes(&queue("mail")).await.unwrap();
        let other = JsonFileState::open(place.join("state.json")).await.unwrap();
        open_queue(&other).await.unwrap();
        expect_notification(&mut changes).await;
    }

    #[cfg(target_os = "linux")]
    fn watchers() -> usize {
        let links = fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        links.filter(|link| link.to_string_lossy().contains("inotify")).count()
    }

    /// In a process of its own, as others watch, too.
    #[cfg(target_os = "linux")]
    #[tokio::test(flavor = "multi_thread")]
    async fn one_watcher_serves_all_queues_and_ends_with_the_last() {
        const THIS: &str = "watch::one_watcher_serves_all_queues_and_ends_with_the_last";
        if !support::is_copy_under(&support::AS_IT_IS, THIS) {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let (state, _) = support::state_in(directory.path()).await;
        for _ in 0..3 {
            assert_eq!(watchers(), 0);
            let mut all = Vec::new();
            for n in 0..20 {
                all.push(state.changes(&QueueName::new(format!("queue {n}")).unwrap()).await.unwrap());
            }
            assert_eq!(watchers(), 1);
            drop(all);
            for _ in 0..1_000 {
                if watchers() == 0 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        assert_eq!(watchers(), 0);
    }

    /// Where this user may have no watcher.
    #[cfg(target_os = "linux")]
    #[tokio::test(flavor = "multi_thread")]
    async fn a_limit_of_the_system_is_named() {
        const THIS: &str = "watch::a_limit_of_the_system_is_named";
        if !support::is_copy_under(&["unshare", "--user", "--map-root-user"], THIS) {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let (state, _) = support::state_in(directory.path()).await;
        fs::write("/proc/sys/user/max_inotify_instances", "0").unwrap();
        let error = state.changes(&queue("mail")).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Full, "{error:?}");
        assert!(error.to_string().contains("fs.inotify.max_user_instances"), "{error}");
        change(&state, Change::Pause).await;
        fs::write("/proc/sys/user/max_inotify_instances", "10").unwrap();
        drop(state.changes(&queue("mail")).await.unwrap());
    }
}
