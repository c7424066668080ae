//! A lock file on a server that forgets, or on a mount that does not lock.

use std::{
    os::unix::fs::MetadataExt,
    sync::atomic::{AtomicU64, Ordering},
};

use super::*;
use crate::{JsonFileState, JsonFileStore};

const LIMIT: Duration = Duration::from_secs(5);

/// A file server that does not know one file any more.
#[derive(Debug)]
struct Forgets(AtomicU64);

impl Exclusion for Forgets {
    fn try_lock(&self, file: &File) -> io::Result<bool> {
        if file.metadata()?.ino() == self.0.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StaleNetworkFileHandle.into());
        }
        Flock.try_lock(file)
    }
    fn unlock(&self, file: &File) -> io::Result<()> {
        Flock.unlock(file)
    }
}

#[test]
fn a_descriptor_that_the_server_forgot_is_opened_again() {
    static SERVER: Forgets = Forgets(AtomicU64::new(0));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.json.lock");
    let mut lock = LockFile::new(path.clone(), &SERVER);
    let ino = lock.acquire(patience(LIMIT)).unwrap().file().unwrap().metadata().unwrap().ino();
    std::fs::rename(&path, directory.path().join("old")).unwrap();
    SERVER.0.store(ino, Ordering::Relaxed);
    lock.acquire(patience(LIMIT)).unwrap();

    // Where a freshly opened one is no better: an error, not an endless loop.
    std::fs::rename(directory.path().join("old"), &path).unwrap();
    let error = lock.acquire(patience(LIMIT)).unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Unreachable);
    SERVER.0.store(0, Ordering::Relaxed);
    lock.acquire(patience(LIMIT)).unwrap();
}

/// A mount that grants every lock and excludes nobody.
#[derive(Debug)]
struct Grants;

impl Exclusion for Grants {
    fn try_lock(&self, _: &File) -> io::Result<bool> {
        Ok(true)
    }
    fn unlock(&self, _: &File) -> io::Result<()> {
        Ok(())
    }
}

/// A mount without locks.
#[derive(Debug)]
struct Refuses;

impl Exclusion for Refuses {
    fn try_lock(&self, _: &File) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn unlock(&self, _: &File) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_place_where_the_lock_does_nothing_is_refused_with_the_way_out() {
    let places: [&'static dyn Exclusion; 2] = [&Grants, &Refuses];
    for place in places {
        let directory = tempfile::tempdir().unwrap();
        let builder = JsonFileStore::builder(directory.path().join("state.json"));
        let store = builder.open_with(place).await.unwrap();
        let error = JsonFileState::on(&store).await.unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Unsupported, "{place:?}: {error}");
        for way_out in ["state.json.lock", "local disk", "NFSv4", "Redis"] {
            assert!(error.to_string().contains(way_out), "{place:?}: {error}");
        }
    }
}
