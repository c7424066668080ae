//! Mounts whose processes cannot share memory, and whose locks are often ineffective.

use std::path::Path;

use interval_queue_contract::{StateError, StateErrorKind};

/// Rejects paths that other hosts or containers see differently, for stores whose processes share
/// memory and a log next to the file. Detects them on Linux only.
///
/// # Errors
///
/// The path is on a network mount, or the file is mounted by itself.
#[cfg(target_os = "linux")]
pub fn check_mount(path: &Path) -> Result<(), StateError> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statfs, statx};

    let directory = super::directory(path);
    let refused = |text| Err(StateError::new(StateErrorKind::Unsupported, text));
    // On some systems `f_type` is signed or wider.
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
    // The log would be outside of the file's mount, invisible to other containers.
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

#[cfg(not(target_os = "linux"))]
#[allow(missing_docs, clippy::missing_errors_doc, reason = "see above")]
pub fn check_mount(_: &Path) -> Result<(), StateError> {
    Ok(())
}

/// The kind of network or host mount with this number in `statfs`. `None`: a local file system.
///
/// FUSE counts as remote: remote and local mounts of FUSE have the same number.
pub fn kind_of_remote(magic: u64) -> Option<&'static str> {
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
