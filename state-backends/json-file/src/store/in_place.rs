//! Overwrites the open state file in place, at most a tenth of the cost of a rename. Linux only.
//!
//! The file is whole after any kill if its length is constant and at most a page: see the [crate's
//! documentation](crate#how-a-state-is-replaced). Every command checks the file, because people
//! edit, replace and delete files.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

use rustix::fs::{
    Access, AtFlags, CWD, FileType, Mode, OFlags, Statx, StatxAttributes, StatxFlags, accessat, fstatfs,
    open, statx,
};

/// Linux's smallest page.
const PAGE_BYTES: usize = 4096;

/// Local and copied a page at once: ext4 (and 2 and 3), XFS, btrfs, tmpfs, and overlays, whose
/// upper layer is one of these.
const FILE_SYSTEMS: [u32; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630];

#[derive(Debug)]
pub(crate) struct Overwritable {
    file: File,
    stamp: Stamp,
}

/// Must not have changed since the file was opened.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    device: (u32, u32),
    inode: u64,
    owner: (u32, u32),
    mode: u16,
}

impl Overwritable {
    /// `None`: it must be replaced by rename, for whatever reason.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let (named, _) = stat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(open(path, flags, Mode::empty()).ok()?);
        // `f_type` is a machine word, of which the lower 32 bits are used.
        let known = FILE_SYSTEMS.contains(&(fstatfs(&file).ok()?.f_type as u32));
        let (stamp, _) = stat(&file, Path::new(""), AtFlags::EMPTY_PATH)?;
        (known && stamp == named).then_some(Self { file, stamp })
    }

    /// `None`: `path` names another file, or the file grew. The caller holds the lock.
    pub(crate) fn read(&self, path: &Path, buffer: &mut Vec<u8>) -> Option<()> {
        let (stamp, length) = stat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
        if stamp != self.stamp {
            return None;
        }
        // A short read proves that the file has ended.
        buffer.resize(length + 1, 0);
        let read = self.file.read_at(buffer, 0).ok()?;
        buffer.truncate(read);
        (read <= length).then_some(())
    }

    /// Over the `before` bytes just read. `false`: the caller must rename instead.
    pub(crate) fn overwrite(&self, directory: &Path, text: &mut Vec<u8>, before: usize) -> io::Result<bool> {
        // Without the right to create files, a process would work until a text grows. Rename, to
        // fail early.
        let rights = Access::WRITE_OK | Access::EXEC_OK;
        let has_room = text.len() <= before && before <= PAGE_BYTES;
        if !has_room || accessat(CWD, directory, rights, AtFlags::EACCESS).is_err() {
            return Ok(false);
        }
        fill_up(text, before);
        // An editor truncates a file before it writes: its text could be shorter and leave our end.
        match stat(&self.file, Path::new(""), AtFlags::EMPTY_PATH) {
            Some((_, length)) if length == before => self.file.write_all_at(text, 0).map(|()| true),
            _ => Ok(false),
        }
    }
}

/// Adds blanks before the final line break.
fn fill_up(text: &mut Vec<u8>, length: usize) {
    if text.len() < length {
        text.pop();
        text.resize(length - 1, b' ');
        text.push(b'\n');
    }
}

/// Requests no times: the next write would then stamp the file again, which costs more than the
/// write.
fn stat(directory: impl std::os::fd::AsFd, path: &Path, flags: AtFlags) -> Option<(Stamp, usize)> {
    let wanted = StatxFlags::TYPE
        | StatxFlags::MODE
        | StatxFlags::NLINK
        | StatxFlags::UID
        | StatxFlags::GID
        | StatxFlags::INO
        | StatxFlags::SIZE;
    let stat = statx(directory, path, flags, wanted).ok()?;
    let asked_for = stat.stx_mask & wanted.bits() == wanted.bits();
    (asked_for && is_ours(&stat)).then(|| (Stamp::of(&stat), usize::try_from(stat.stx_size).unwrap_or(0)))
}

/// One name, not mounted by itself: otherwise another path may lead to it, with another lock file.
fn is_ours(stat: &Statx) -> bool {
    FileType::from_raw_mode(stat.stx_mode.into()) == FileType::RegularFile
        && stat.stx_nlink == 1
        && stat.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT)
        && !stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
}

impl Stamp {
    fn of(stat: &Statx) -> Self {
        Self {
            device: (stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            owner: (stat.stx_uid, stat.stx_gid),
            mode: stat.stx_mode,
        }
    }
}
