//! The stamps of a file system.

use std::time::Duration;

use interval_queue_store::files::lock::try_lock;

use super::*;
use crate::store::lock::{LockFile, lock_wait};

#[test]
fn the_stamp_is_the_time_of_the_file_system_and_never_goes_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.json.lock");
    let mut lock = LockFile::new(path.clone(), try_lock);
    let before = host();
    let mut latest = 0;
    for _ in 0..50 {
        let held = lock.acquire(lock_wait(Duration::from_secs(5))).unwrap();
        let now = Clock::FileServer.read(&held).unwrap();
        assert_eq!(micros(std::fs::metadata(&path).unwrap().modified().unwrap()), now);
        assert!(now >= latest, "{now:?} after {latest:?}");
        latest = now;
    }
    let step = 2_000_000;
    assert!(latest + step > before && latest < host() + step, "{latest:?} is not near {before:?}");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 1, "every stamp writes the same byte");
}
