//! When the file is overwritten where it stands, when it is replaced by rename instead, and what nobody
//! notices of it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::{Path, PathBuf},
};

use interval_queue_contract::{Change, Command, Memory, SharedState};
use interval_queue_json_file::{Clock, Fsync, JsonFileState, JsonFileStore, Replacement};
use support::{Taker, last_ticket, look, open_queue, opened, queue, state_in};

/// As much as is written in one go.
const PAGE_BYTES: u64 = 4096;

fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

/// A command that leaves the text as long as it is.
async fn change_nothing(state: &JsonFileState) {
    open_queue(state).await.unwrap();
}

/// An open state file whose next command overwrites it.
async fn overwritable_in(directory: &Path) -> (JsonFileState, PathBuf) {
    let (state, path) = state_in(directory).await;
    let before = inode(&path);
    change_nothing(&state).await;
    assert_eq!(inode(&path), before, "overwritten");
    (state, path)
}

#[tokio::test]
async fn a_shorter_text_is_padded_and_a_longer_one_replaces_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = state_in(directory.path()).await;
    let short = fs::read_to_string(&path).unwrap();
    let before = inode(&path);
    let mut taker = Taker::new(&state, "shard");
    taker.take().await.unwrap();
    let long = fs::read_to_string(&path).unwrap();
    assert!(long.len() > short.len() && long.ends_with("}\n"), "{long}");
    assert_ne!(inode(&path), before);

    let before = inode(&path);
    taker.leave().await.unwrap();
    let filled_up = fs::read_to_string(&path).unwrap();
    assert_eq!((inode(&path), filled_up.len()), (before, long.len()));
    assert!(filled_up.trim_end().len() < long.trim_end().len(), "{filled_up}");
    assert_eq!(filled_up.trim_end_matches('\n').trim_end_matches(' ').chars().last(), Some('}'));
    assert!(filled_up.ends_with(" \n"), "a person's next prompt is on a line of its own");
    assert_eq!(filled_up.lines().count(), filled_up.trim_end().lines().count());
    assert_eq!(state.queues().await.unwrap(), [queue("mail")]);

    taker.take().await.unwrap();
    assert_eq!(inode(&path), before);
    assert_eq!(fs::read_to_string(&path).unwrap().len(), long.len());
}

#[tokio::test]
async fn a_text_of_more_than_a_page_takes_a_new_file_each_time() {
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = state_in(directory.path()).await;
    let mut shards = 0;
    while fs::metadata(&path).unwrap().len() <= PAGE_BYTES {
        let before = inode(&path);
        change_nothing(&state).await;
        assert_eq!(inode(&path), before, "overwritten up to a page");
        shards += 1;
        assert!(shards < 20);
        Taker::new(&state, &format!("shard {shards}")).take().await.unwrap();
    }
    assert!(shards > 5, "{shards}");
    let before = inode(&path);
    change_nothing(&state).await;
    assert_ne!(inode(&path), before);
}

#[tokio::test]
async fn the_file_is_overwritten_only_without_flushes_and_if_allowed() {
    use Replacement::{InPlace, Rename};
    for (replacement, fsync, clock, is_overwritten) in [
        (InPlace, Fsync::Never, Clock::Host, true),
        (Rename, Fsync::Never, Clock::Host, false),
        (InPlace, Fsync::Always, Clock::Host, false),
        (InPlace, Fsync::Never, Clock::FileServer, false),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        let builder = JsonFileStore::builder(&path).replacement(replacement).fsync(fsync).clock(clock);
        let state = opened(builder).await.unwrap();
        open_queue(&state).await.unwrap();
        let before = inode(&path);
        change_nothing(&state).await;
        assert_eq!(inode(&path) == before, is_overwritten, "{replacement:?} {fsync:?} {clock:?}");
    }
}

#[tokio::test]
async fn a_file_with_another_name_is_not_overwritten_under_it() {
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = overwritable_in(directory.path()).await;
    // As backups made of hard links, which cost no room.
    let backup = directory.path().join("backup");
    fs::hard_link(&path, &backup).unwrap();
    let before = fs::read(&backup).unwrap();
    change_nothing(&state).await;
    Taker::new(&state, "shard").take().await.unwrap();
    assert_eq!(fs::read(&backup).unwrap(), before);
    assert_ne!(inode(&path), inode(&backup));
}

#[tokio::test]
async fn a_file_that_was_moved_away_or_replaced_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = overwritable_in(directory.path()).await;
    let moved = directory.path().join("moved");
    fs::rename(&path, &moved).unwrap();
    let before = fs::read(&moved).unwrap();
    assert_eq!(look(&state).await.unwrap(), None);
    change_nothing(&state).await;
    assert_eq!(fs::read(&moved).unwrap(), before);
    Taker::new(&state, "shard").take().await.unwrap();
    assert_eq!(last_ticket(&state).await, 1);

    // As most editors do.
    fs::rename(&moved, &path).unwrap();
    assert_eq!(last_ticket(&state).await, 0);
    change_nothing(&state).await;
    assert_eq!(last_ticket(&state).await, 0);
}

#[tokio::test]
async fn a_file_that_was_edited_where_it_stands_is_read_anew() {
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = overwritable_in(directory.path()).await;
    let text = fs::read_to_string(&path).unwrap();
    for interval in ["9000000", "250000", "1000"] {
        fs::write(&path, text.replace("250000", interval)).unwrap();
        state.apply(&queue("mail"), Command::Change(Change::Pause, Memory::default())).await.unwrap();
        let record = look(&state).await.unwrap().unwrap().record;
        assert_eq!(record.interval().get().to_string(), interval);
        assert!(record.paused);
    }
}

#[tokio::test]
async fn a_link_planted_in_the_place_of_the_file_leads_to_no_write() {
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = overwritable_in(directory.path()).await;
    let victim = directory.path().join("victim");
    fs::rename(&path, &victim).unwrap();
    symlink(&victim, &path).unwrap();
    let before = fs::read(&victim).unwrap();
    change_nothing(&state).await;
    assert_eq!(fs::read(&victim).unwrap(), before);
    assert!(!path.is_symlink());
}
