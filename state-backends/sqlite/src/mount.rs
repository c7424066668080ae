//! Mounts on which the processes of a database cannot see each other.
//!
//! The index of the write-ahead log is memory that all processes share, which two hosts cannot; and over such
//! mounts locks are often not what they say. What SQLite does then is to damage the database, so it is
//! refused.

use std::path::Path;

use interval_queue_contract::{StateError, StateErrorKind};

/// Refuses a place that the processes of other hosts, or of other containers, see differently.
#[cfg(target_os = "linux")]
pub(crate) fn check(path: &Path, directory: &Path) -> Result<(), StateError> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statfs, statx};

    let refused = |text| Err(StateError::new(StateErrorKind::Unsupported, text));
    // Some systems give it as a signed or longer number.
    let magic = statfs(directory).map(|place| place.f_type as u64 & 0xffff_ffff);
    if let Some(kind) = magic.ok().and_then(kind_of_remote) {
        return refused(format!(
            "{} is on {kind}, where processes cannot share the memory that SQLite needs: use a local disk for the processes of \
             one host, otherwise Redis, PostgreSQL or a JSON file",
            path.display()
        ));
    }
    let mount = |path: &Path| {
        let known = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
        StatxFlags::from_bits_retain(known.stx_mask).contains(StatxFlags::MNT_ID).then_some(known.stx_mnt_id)
    };
    // Its log would be on the other side of the mount, where other containers have none.
    if let (Some(of_file), Some(of_directory)) = (mount(path), mount(directory))
        && of_file != of_directory
    {
        return refused(format!(
            "{} is mounted by itself, without the log that belongs beside it: mount its directory instead",
            path.display()
        ));
    }
    Ok(())
}

/// Elsewhere nothing tells; the documentation does.
#[cfg(not(target_os = "linux"))]
pub(crate) fn check(_: &Path, _: &Path) -> Result<(), StateError> {
    Ok(())
}

/// What kind of network or host mount has this number in `statfs`; none for a local file system.
///
/// FUSE is one, since behind the same number are GlusterFS, sshfs, object stores and the mounts of virtual
/// machines, and nothing tells them from the local ones.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has such numbers"))]
fn kind_of_remote(magic: u64) -> Option<&'static str> {
    Some(match magic {
        0x6969 => "NFS",
        0x517b => "an SMB mount",
        0xff53_4d42 => "a CIFS mount",
        0xfe53_4d42 => "an SMB2 mount",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x00c3_6400 => "CephFS",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x1983_0326 => "BeeGFS",
        0x0102_1997 => "a 9p mount",
        0x0116_1970 => "GFS2",
        0x7461_636f => "OCFS2",
        0x786f_4256 => "a folder shared by VirtualBox",
        0xbacb_acbc => "a folder shared by VMware",
        0x6573_5546 => "a FUSE mount",
        _ => return None,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_mounts_are_known_by_their_numbers_and_local_file_systems_pass() {
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
        for magic in [
            0xef53,
            0x0102_1994,
            0x794c_7630,
            0x5846_5342,
            0x9123_683e,
            0x2fc1_2fc1,
            0xf2f5_2010,
            0xca45_1a4e,
        ] {
            assert_eq!(kind_of_remote(magic), None, "{magic:#x}");
        }
    }

    #[test]
    fn a_directory_for_temporary_files_passes() {
        for directory in [std::env::temp_dir().as_path(), Path::new("/dev/shm")] {
            check(&directory.join("queues.db"), directory).unwrap();
        }
    }
}
