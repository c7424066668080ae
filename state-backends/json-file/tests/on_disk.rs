//! What is on the disk before, during and after a command.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{fs, path::Path};

use interval_queue_contract::{SharedState, StateErrorKind};
use interval_queue_json_file::{Clock, Fsync, JsonFileState, JsonFileStore};
use support::{Taker, last_ticket, look, open_queue, opened, state_in};

fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn the_first_change_creates_the_file_and_a_read_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let state = JsonFileState::open(directory.path().join("state.json")).await.unwrap();
    assert_eq!(look(&state).await.unwrap(), None);
    assert_eq!(state.queues().await.unwrap(), []);
    let error = Taker::new(&state, "shard").take().await.unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::NotFound);
    assert_eq!(names_in(directory.path()), ["state.json.lock"]);
    open_queue(&state).await.unwrap();
    assert_eq!(names_in(directory.path()), ["state.json", "state.json.lock"]);
}

#[tokio::test]
async fn flushing_does_not_change_the_result() {
    for fsync in [Fsync::Never, Fsync::Always] {
        for clock in [Clock::Host, Clock::FileServer] {
            let directory = tempfile::tempdir().unwrap();
            let builder = JsonFileStore::builder(directory.path().join("state.json"));
            let state = opened(builder.fsync(fsync).clock(clock)).await.unwrap();
            open_queue(&state).await.unwrap();
            assert_eq!(Taker::new(&state, "shard").take().await.unwrap(), 1);
            assert_eq!(last_ticket(&state).await, 1);
            assert_eq!(names_in(directory.path()), ["state.json", "state.json.lock"]);
        }
    }
}

#[tokio::test]
async fn leftovers_of_a_killed_writer_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = state_in(directory.path()).await;
    fs::write(directory.path().join("state.json.tmp"), "{\"interval_que").unwrap();
    assert_eq!(Taker::new(&state, "shard").take().await.unwrap(), 1);
    assert_eq!(names_in(directory.path()), ["state.json", "state.json.lock"]);
    assert!(serde_json::from_slice::<serde_json::Value>(&fs::read(path).unwrap()).is_ok());
}

#[tokio::test]
async fn a_read_is_whole_while_others_replace_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let (state, _) = state_in(directory.path()).await;
    let mut taker = Taker::new(&state, "shard");
    let taking = tokio::spawn(async move {
        for _ in 0..500 {
            taker.take().await.unwrap();
        }
    });
    let (mut reads, mut last) = (0, 0);
    while !taking.is_finished() {
        let now = last_ticket(&state).await;
        assert!(now >= last, "{now} after {last}");
        (reads, last) = (reads + 1, now);
    }
    taking.await.unwrap();
    assert!(reads > 0);
    assert_eq!(last_ticket(&state).await, 500);
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[tokio::test]
    async fn a_link_to_the_state_file_stays_a_link() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("real")).unwrap();
        let link = directory.path().join("link.json");
        symlink("real/state.json", &link).unwrap();
        // Before the file is there, and after.
        for ticket in 1..=2 {
            let state = JsonFileState::open(&link).await.unwrap();
            open_queue(&state).await.unwrap();
            assert_eq!(Taker::new(&state, &format!("shard {ticket}")).take().await.unwrap(), ticket);
            assert!(link.is_symlink());
        }
        assert_eq!(names_in(directory.path()), ["link.json", "real"]);
        assert_eq!(names_in(&directory.path().join("real")), ["state.json", "state.json.lock"]);
    }

    #[tokio::test]
    async fn a_link_planted_under_the_temporary_name_leads_nowhere() {
        let directory = tempfile::tempdir().unwrap();
        let (state, path) = state_in(directory.path()).await;
        let victim = directory.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, directory.path().join("state.json.tmp")).unwrap();
        Taker::new(&state, "shard").take().await.unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(!path.is_symlink());
    }

    #[tokio::test]
    async fn the_mode_of_the_file_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let (state, path) = state_in(directory.path()).await;
        let by_umask = directory.path().join("by_umask");
        fs::write(&by_umask, "").unwrap();
        assert_eq!(mode(&path), mode(&by_umask));
        assert_eq!(mode(&directory.path().join("state.json.lock")), mode(&by_umask));
        let mut taker = Taker::new(&state, "shard");
        for kept in [0o600, 0o664, 0o640, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(kept)).unwrap();
            taker.take().await.unwrap();
            assert_eq!(mode(&path), kept, "{kept:o}");
        }
    }

    #[tokio::test]
    async fn a_command_of_the_superuser_leaves_the_owner_his_file() {
        let directory = tempfile::tempdir().unwrap();
        let (state, path) = state_in(directory.path()).await;
        if std::os::unix::fs::chown(&path, Some(4711), Some(4712)).is_err() {
            return support::skipped("a_command_of_the_superuser_leaves_the_owner_his_file", "the superuser");
        }
        Taker::new(&state, "shard").take().await.unwrap();
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (4711, 4712));
    }
}
