//! Places that refuse: full, read-only, without rights, or mounted file by file.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use interval_queue_contract::StateErrorKind;
use interval_queue_sqlite::{Durability, SqliteState, SqliteStore};
use interval_queue_test_support::{Immutable, SmallDisk};
use support::{
    AS_IT_IS, NO_POWERS, Taker, all_files, assert_error, is_copy_under, is_whole, last_ticket, look, mount,
    open_queue, opened, skipped, state_in, unmount, until_closed,
};

/// A small disk, or a word that there is none.
fn small_disk(test: &str) -> Option<SmallDisk> {
    if SmallDisk::is_possible() {
        return Some(SmallDisk::mount());
    }
    skipped(test, "root");
    None
}

#[tokio::test]
#[ignore = "needs root: scripts/test runs it"]
async fn a_full_disk_leaves_the_state_as_it_was_and_heals() {
    let Some(disk) = small_disk("a_full_disk_leaves_the_state_as_it_was_and_heals") else { return };
    for durability in [Durability::Full, Durability::Relaxed] {
        let path = disk.path().join("queues.db");
        let state = opened(SqliteStore::builder(&path).durability(durability)).await.unwrap();
        open_queue(&state).await.unwrap();
        let mut taker = Taker::new(&state, "shard");
        assert_eq!(taker.take().await.unwrap(), 1);
        let mut last = 0;
        for _ in 0..2 {
            let error = loop {
                // The log may have some room left, and what failed may have left some.
                disk.fill();
                last = last_ticket(&state).await;
                if let Err(error) = taker.take().await {
                    break error;
                }
            };
            assert_error(&error, StateErrorKind::Full, &path, "no room left");
            assert_eq!(last_ticket(&state).await, last, "a look needs no room, and what failed took nothing");
        }
        disk.free();
        assert_eq!(taker.take().await.unwrap(), last + 1);
        drop((taker, state));
        assert!(is_whole(&path));
        remove_database(&path);
    }
}

fn remove_database(path: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{ending}", path.display()));
    }
}

fn has_tables(path: &Path) -> bool {
    let count = "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'interval_queue%' AND type = 'table'";
    rusqlite::Connection::open(path).unwrap().query_row(count, [], |row| row.get(0)) == Ok(2)
}

#[tokio::test]
#[ignore = "needs root: scripts/test runs it"]
async fn nothing_is_left_of_a_database_for_which_there_was_no_room() {
    let Some(disk) = small_disk("nothing_is_left_of_a_database_for_which_there_was_no_room") else { return };
    let path = disk.path().join("queues.db");
    // Room for nothing, for the first page, for the log, and so on until there is enough.
    for free_pages in 0.. {
        let gap = disk.path().join("gap");
        fs::write(&gap, vec![0; free_pages * 4096]).unwrap();
        disk.fill();
        fs::remove_file(&gap).unwrap();
        let before = all_files(disk.path());
        let state = SqliteState::open(&path).await.unwrap();
        assert_eq!(all_files(disk.path()), before, "who opens it makes nothing");
        match open_queue(&state).await {
            Ok(_) => {
                assert!(free_pages > 2, "{free_pages}");
                break;
            }
            Err(error) => assert_error(&error, StateErrorKind::Full, &path, "no room left"),
        }
        drop(state);
        disk.free();
        if path.exists() {
            // There was room for the tables, and none for a record.
            assert!(is_whole(&path) && has_tables(&path), "{free_pages} pages free");
            remove_database(&path);
        }
        assert!(all_files(disk.path()).is_empty(), "{free_pages} pages free");
    }
}

#[tokio::test]
#[ignore = "needs root: scripts/test runs it"]
async fn a_read_only_place_is_refused_and_one_that_becomes_so_heals() {
    let Some(disk) = small_disk("a_read_only_place_is_refused_and_one_that_becomes_so_heals") else { return };
    let (state, path) = state_in(disk.path()).await;
    // Files that are open may be written to until they are opened again.
    drop(state);
    until_closed(&path).await;
    mount(&["-o", "remount,ro"], disk.path());
    let before = all_files(disk.path());
    for path in [&path, &path.with_file_name("new.db")] {
        let error = SqliteState::open(path).await.unwrap_err();
        assert_error(&error, StateErrorKind::Denied, path, "the file system is read-only");
    }
    assert_eq!(all_files(disk.path()), before);
    mount(&["-o", "remount,rw"], disk.path());
    let state = SqliteState::open(&path).await.unwrap();
    assert_eq!(Taker::new(&state, "shard").take().await.unwrap(), 1);
}

#[tokio::test]
#[ignore = "needs root: scripts/test runs it"]
async fn a_directory_in_which_nothing_can_be_made_is_named() {
    const NAME: &str = "a_directory_in_which_nothing_can_be_made_is_named";
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = state_in(directory.path()).await;
    let Some(immutable) = Immutable::make(directory.path()) else {
        return skipped(NAME, "a file system with immutable directories");
    };
    let new = path.with_file_name("new.db");
    let error = SqliteState::open(&new).await.unwrap_err();
    assert_error(&error, StateErrorKind::Denied, &new, "this user needs the right");
    assert!(!new.exists());
    open_queue(&state).await.unwrap();
    assert!(look(&state).await.unwrap().is_some());
    drop(immutable);
}

#[tokio::test]
#[ignore = "needs root: scripts/test runs it"]
async fn a_file_that_is_mounted_by_itself_is_refused() {
    let Some(disk) = small_disk("a_file_that_is_mounted_by_itself_is_refused") else { return };
    drop(state_in(disk.path()).await);
    let elsewhere = tempfile::tempdir().unwrap();
    let alone = elsewhere.path().canonicalize().unwrap().join("queues.db");
    fs::write(&alone, "").unwrap();
    mount(&["--bind", &disk.path().join("queues.db").display().to_string()], &alone);
    let error = SqliteState::open(&alone).await;
    unmount(&alone);
    assert_error(&error.unwrap_err(), StateErrorKind::Unsupported, &alone, "mount its directory instead");
}

#[tokio::test]
async fn missing_rights_are_denied() {
    const NAME: &str = "missing_rights_are_denied";
    // The superuser passes over permissions unless it is without that power.
    if !is_copy_under(if SmallDisk::is_possible() { &NO_POWERS } else { &AS_IT_IS }, NAME) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let rights = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let (state, path) = state_in(place).await;
    drop(state);
    until_closed(&path).await;
    let denied = async |path: &Path| {
        let before = all_files(place);
        let error = SqliteState::open(path).await.unwrap_err();
        assert_error(&error, StateErrorKind::Denied, path, "this user needs the right");
        assert_eq!(all_files(place), before);
    };
    // A directory in which nothing can be made: no new database, no log beside one that is there.
    rights(place, 0o555);
    denied(&path).await;
    denied(&path.with_file_name("new.db")).await;
    rights(place, 0o755);
    for mode in [0o444, 0o000] {
        rights(&path, mode);
        denied(&path).await;
    }
    rights(&path, 0o644);
    open_queue(&SqliteState::open(&path).await.unwrap()).await.unwrap();
}
