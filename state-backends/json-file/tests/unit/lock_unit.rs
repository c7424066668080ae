//! A lock file on a server that forgets, or on a mount that does not lock.

use std::{
    os::unix::fs::MetadataExt,
    sync::atomic::{AtomicU64, Ordering},
};

use super::*;
use crate::{JsonFileState, JsonFileStore};

const LIMIT: Duration = Duration::from_secs(5);

/// The file that its server does not know any more.
static FORGOTTEN: AtomicU64 = AtomicU64::new(0);

fn forgetful(file: &File) -> io::Result<bool> {
    if file.metadata()?.ino() == FORGOTTEN.load(Ordering::Relaxed) {
        return Err(io::ErrorKind::StaleNetworkFileHandle.into());
    }
    interval_queue_store::files::lock::try_lock(file)
}

#[test]
fn a_descriptor_that_the_server_forgot_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.json.lock");
    let mut lock = LockFile::new(path.clone(), forgetful);
    let ino = lock.acquire(lock_wait(LIMIT)).unwrap().file().unwrap().metadata().unwrap().ino();
    std::fs::rename(&path, directory.path().join("old")).unwrap();
    FORGOTTEN.store(ino, Ordering::Relaxed);
    lock.acquire(lock_wait(LIMIT)).unwrap();

    // Where a freshly opened one is no better: an error, not an endless loop.
    std::fs::rename(directory.path().join("old"), &path).unwrap();
    let error = lock.acquire(lock_wait(LIMIT)).unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Unreachable);
    FORGOTTEN.store(0, Ordering::Relaxed);
    lock.acquire(lock_wait(LIMIT)).unwrap();
}

#[tokio::test]
async fn a_lock_that_does_not_exclude_is_refused_with_the_way_out() {
    let grants_all: TryLock = |_| Ok(true);
    let has_no_locks: TryLock = |_| Err(io::ErrorKind::Unsupported.into());
    for try_lock in [grants_all, has_no_locks] {
        let directory = tempfile::tempdir().unwrap();
        let builder = JsonFileStore::builder(directory.path().join("state.json"));
        let store = builder.open_with(try_lock).await.unwrap();
        let error = JsonFileState::on(&store).await.unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Unsupported, "{error}");
        for way_out in ["state.json.lock", "local disk", "NFSv4", "Redis"] {
            assert!(error.to_string().contains(way_out), "{error}");
        }
    }
}
