//! Places that refuse: read-only, without rights, full, or mounted file by file. Each is made in a copy of
//! this test program that has mounts or rights of its own, so that nothing is left behind and no real place
//! is touched.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use interval_queue_contract::{StateError, StateErrorKind};
use interval_queue_json_file::{Clock, Fsync, JsonFileState, JsonFileStore};
use support::{
    AS_IT_IS, NO_POWERS, OWN_MOUNTS, Taker, all_files, is_copy_under, last_ticket, look, mount, open_queue,
    opened, state_in, unmount,
};

fn assert_error(error: &StateError, kind: StateErrorKind, says: &str) {
    support::assert_error(error, kind, Path::new(".json"), says);
}

/// A big queue beside the one in question: to write it all again takes more than is free.
fn fill_with(path: &Path, bytes: usize) {
    let filler = format!("{{\"version\": 99, \"filler\": \"{}\"}}", "x".repeat(bytes));
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, text.replace("\"mail\":", &format!("\"filler\": {filler},\n    \"mail\":"))).unwrap();
}

#[tokio::test]
async fn a_full_disk_leaves_the_state_as_it_was_and_heals() {
    const NAME: &str = "a_full_disk_leaves_the_state_as_it_was_and_heals";
    if !is_copy_under(&OWN_MOUNTS, NAME) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    mount(&["-t", "tmpfs", "-o", "size=64k,nr_inodes=12", "tmpfs"], place);
    let (state, path) = state_in(place).await;
    for (fsync, clock) in
        [(Fsync::Never, Clock::Host), (Fsync::Always, Clock::Host), (Fsync::Never, Clock::FileServer)]
    {
        let builder = JsonFileStore::builder(&path).fsync(fsync).clock(clock);
        let state = opened(builder).await.unwrap();
        let mut taker = Taker::new(&state, &format!("{fsync:?} {clock:?}"));
        taker.take().await.unwrap();
        let roomy = fs::read(&path).unwrap();

        fill_with(&path, 40_000);
        let before = all_files(place);
        let error = taker.take().await.unwrap_err();
        assert_error(&error, StateErrorKind::Full, "there is no room left");
        assert!(error.to_string().contains("state.json.tmp"), "{error}");
        assert_eq!(all_files(place), before);
        assert!(look(&state).await.unwrap().is_some(), "a read needs no room");

        fs::write(&path, roomy).unwrap();
        taker.take().await.unwrap();
    }
    assert_eq!(last_ticket(&state).await, 6);

    // Not even room for a lock file.
    fs::remove_file(place.join("state.json.lock")).unwrap();
    let mut filler = 0;
    while fs::write(place.join(format!("filler {filler}")), "").is_ok() {
        filler += 1;
    }
    let before = all_files(place);
    let error = JsonFileState::open(&path).await.unwrap_err();
    assert_error(&error, StateErrorKind::Full, "state.json.lock");
    assert_eq!(all_files(place), before);
}

#[tokio::test]
async fn a_read_only_directory_is_refused_but_can_be_read() {
    const NAME: &str = "a_read_only_directory_is_refused_but_can_be_read";
    if !is_copy_under(&OWN_MOUNTS, NAME) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    mount(&["-t", "tmpfs", "tmpfs"], place);
    let (state, _) = state_in(place).await;
    // The place as other mounts of it see it: read-only, with the files that are there.
    let elsewhere = tempfile::tempdir().unwrap();
    mount(&["--bind", &place.display().to_string()], elsewhere.path());
    mount(&["-o", "remount,bind,ro"], elsewhere.path());
    let before = all_files(place);
    let error = JsonFileState::open(elsewhere.path().join("state.json")).await.unwrap_err();
    assert_error(&error, StateErrorKind::Denied, "read-only");
    let error = JsonFileState::open(elsewhere.path().join("new.json")).await.unwrap_err();
    assert_error(&error, StateErrorKind::Denied, "read-only");
    assert_eq!(all_files(place), before);
    unmount(elsewhere.path());

    let mut taker = Taker::new(&state, "shard");
    assert_eq!(taker.take().await.unwrap(), 1);
    let before = all_files(place);
    mount(&["--bind", &place.display().to_string()], place);
    mount(&["-o", "remount,bind,ro"], place);
    let error = taker.take().await.unwrap_err();
    assert_error(&error, StateErrorKind::Denied, "the file system is read-only");
    assert!(look(&state).await.unwrap().is_some());
    assert_eq!(all_files(place), before);
    unmount(place);
    assert_eq!(taker.take().await.unwrap(), 2, "the take that failed took nothing");
}

#[tokio::test]
async fn missing_rights_are_denied() {
    const NAME: &str = "missing_rights_are_denied";
    let superuser = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !is_copy_under(if superuser { &NO_POWERS } else { &AS_IT_IS }, NAME) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let rights = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let (state, path) = state_in(place).await;
    let before = all_files(place);
    let denied =
        |error: &StateError| assert_error(error, StateErrorKind::Denied, "this user needs the right");

    // A directory in which nothing can be created.
    rights(place, 0o555);
    denied(&open_queue(&state).await.unwrap_err());
    denied(&JsonFileState::open(place.join("new.json")).await.unwrap_err());
    assert!(look(&state).await.unwrap().is_some());
    rights(place, 0o755);

    // A file that cannot be read.
    rights(&path, 0o000);
    denied(&open_queue(&state).await.unwrap_err());
    denied(&look(&state).await.unwrap_err());
    denied(&JsonFileState::open(&path).await.unwrap_err());
    rights(&path, 0o644);

    // A file that was given to somebody else, and is his alone.
    rights(&path, 0o600);
    open_queue(&state).await.unwrap();
    let me = fs::metadata(&path).unwrap().uid();
    if std::os::unix::fs::chown(&path, Some(me + 4711), None).is_ok() {
        denied(&open_queue(&state).await.unwrap_err());
        std::os::unix::fs::chown(&path, Some(me), None).unwrap();
    }
    rights(&path, 0o644);

    // A lock file that cannot be written to.
    rights(&place.join("state.json.lock"), 0o444);
    denied(&JsonFileState::open(&path).await.unwrap_err());
    rights(&place.join("state.json.lock"), 0o644);

    assert_eq!(all_files(place).len(), before.len());
    open_queue(&state).await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_mounted_by_itself_is_refused_with_the_way_out() {
    const NAME: &str = "a_file_that_is_mounted_by_itself_is_refused_with_the_way_out";
    if !is_copy_under(&OWN_MOUNTS, NAME) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let (_, path) = state_in(place).await;
    // As containers do with a single file.
    let inside = tempfile::tempdir().unwrap();
    let mounted = inside.path().join("state.json");
    fs::write(&mounted, "").unwrap();
    mount(&["--bind", &path.display().to_string()], &mounted);
    let state = JsonFileState::open(&mounted).await.unwrap();
    let before = (all_files(place), all_files(inside.path()));
    let errors = [
        Taker::new(&state, "shard").take().await.unwrap_err(),
        // Nor is it overwritten: its lock is not the one of those who have the file under its other name.
        open_queue(&state).await.unwrap_err(),
    ];
    for error in &errors {
        assert_error(error, StateErrorKind::Unsupported, "mount its directory instead");
    }
    assert_eq!((all_files(place), all_files(inside.path())), before);
    unmount(&mounted);
}
