//! Mounts, clocks and waits of stores in files. Paths are tested with the states in files.
#![cfg(all(unix, feature = "files"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    cell::Cell,
    collections::BTreeSet,
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use interval_queue_contract::StateErrorKind;
use interval_queue_store::files::{LockTimeout, check_mount, clock, jittered, kind_of_remote, resolve};

#[test]
fn a_name_without_directory_is_in_the_current_one() {
    let here = std::env::current_dir().unwrap().canonicalize().unwrap();
    assert_eq!(resolve(Path::new("no_such_file.json"), "").unwrap(), here.join("no_such_file.json"));
    assert_eq!(resolve(Path::new(""), "").unwrap_err().kind(), StateErrorKind::Invalid);
}

#[test]
fn network_mounts_are_detected_and_local_file_systems_pass() {
    for (magic, kind) in [
        (0x6969, "NFS"),
        (0x517b, "SMB"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB2"),
        (0x5346_414f, "AFS"),
        (0x00c3_6400, "Ceph"),
        (0x0bd0_0bd0, "Lustre"),
        (0x0102_1997, "9p"),
        (0x6573_5546, "FUSE"),
    ] {
        assert!(kind_of_remote(magic).unwrap().contains(kind), "{magic:#x}");
    }
    // ext4, tmpfs, overlay, XFS, btrfs, ZFS, F2FS, bcachefs
    let local = [0xef53, 0x0102_1994, 0x794c_7630, 0x5846_5342, 0x9123_683e, 0x2fc1_2fc1, 0xf2f5_2010];
    for magic in local.into_iter().chain([0xca45_1a4e]) {
        assert_eq!(kind_of_remote(magic), None, "{magic:#x}");
    }
    for directory in [std::env::temp_dir().as_path(), Path::new("/dev/shm")] {
        check_mount(&directory.join("queues.db")).unwrap();
    }
}

#[test]
fn a_long_wait_retries_rarely() {
    let looks = Cell::new(0);
    let pause = (Duration::from_millis(1), Duration::from_millis(10));
    let timeout = LockTimeout::begin(Duration::from_secs(1), pause);
    timeout.until_free(|()| true, || looks.set(looks.get() + 1));
    assert!((2..400).contains(&looks.get()), "{looks:?}");

    let pauses: BTreeSet<_> = (0..100).map(|_| jittered(pause.1)).collect();
    assert!(pauses.len() > 10, "those who wait do not come back together: {pauses:?}");
    assert!(pauses.iter().all(|is| *is <= pause.1 && *is >= pause.1 / 2), "{pauses:?}");
}

#[test]
fn an_instant_before_the_epoch_is_zero() {
    assert_eq!(clock::micros(UNIX_EPOCH - Duration::from_secs(1)), 0);
    assert_eq!(clock::micros(UNIX_EPOCH + Duration::from_nanos(1_999)), 1);
}
