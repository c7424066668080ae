//! Whether the lock excludes at the place where the file is. On some mounts it succeeds and does nothing.

use interval_queue_contract::{StateError, StateErrorKind};

use crate::lock::{LockFile, Patience};

/// Takes the lock and lets a second descriptor try.
pub(crate) fn probe(lock: &mut LockFile, patience: Patience) -> Result<(), StateError> {
    let excludes = lock.acquire(patience)?.excludes()?;
    if excludes {
        return Ok(());
    }
    let path = lock.path().display();
    Err(StateError::new(
        StateErrorKind::Unsupported,
        format!(
            "a lock on {path} does not exclude: use a local disk, mount with locks (NFSv4, without nolock and \
             local_lock), or use Redis"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io};

    use super::*;
    use crate::{JsonFileState, lock::Exclusion};

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
            let builder = JsonFileState::builder(directory.path().join("state.json"));
            let error = JsonFileState::open_with(builder, place).await.unwrap_err();
            assert_eq!(error.kind(), StateErrorKind::Unsupported, "{place:?}: {error}");
            for way_out in ["state.json.lock", "local disk", "NFSv4", "Redis"] {
                assert!(error.to_string().contains(way_out), "{place:?}: {error}");
            }
        }
    }
}
