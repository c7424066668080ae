//! The state file kept open and overwritten where it stands, which costs a tenth of a rename and less.
//!
//! Linux alone. Its file systems copy a text of at most a page in one go, and look for a kill before that or
//! after. So the file is whole whatever process is killed, as long as its length stays what it is: a shorter
//! text is filled up with blanks, a longer one is left to a rename. A length that changed could also reach
//! the disk without its text.
//!
//! What stands is asked for again with every command, since people edit, replace and delete files.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

use rustix::fs::{
    Access, AtFlags, CWD, FileType, Mode, OFlags, Statx, StatxAttributes, StatxFlags, accessat, fstatfs,
    open, statx,
};

/// The smallest page of a Linux, and the largest text that is written in one go.
const PAGE: usize = 4096;

/// Those that are known to be of this host, and to copy a page in one go: ext4 (and 2 and 3), XFS, btrfs,
/// tmpfs, and overlays, whose upper layer is one of these.
const FILE_SYSTEMS: [u32; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630];

/// A file that may be overwritten.
#[derive(Debug)]
pub(crate) struct Overwritable {
    file: File,
    stamp: Stamp,
}

/// What has to be as it was when the file was opened.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    device: (u32, u32),
    inode: u64,
    owner: (u32, u32),
    mode: u16,
}

impl Overwritable {
    /// Opens the file at `path`, unless it is one to replace by rename. Why it is, or cannot be opened, is
    /// not said.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let (named, _) = look(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(open(path, flags, Mode::empty()).ok()?);
        // As wide as a word of the machine, of which half is used.
        let known = FILE_SYSTEMS.contains(&(fstatfs(&file).ok()?.f_type as u32));
        let (stamp, _) = look(&file, Path::new(""), AtFlags::EMPTY_PATH)?;
        (known && stamp == named).then_some(Self { file, stamp })
    }

    /// Reads the file as it is at one instant into `buffer`, if this is still the file at `path`. The caller
    /// holds the lock.
    pub(crate) fn read(&self, path: &Path, buffer: &mut Vec<u8>) -> Option<()> {
        let (stamp, length) = look(CWD, path, AtFlags::SYMLINK_NOFOLLOW)?;
        if stamp != self.stamp {
            return None;
        }
        // A byte more than there should be: where that one is missing the file has ended.
        buffer.resize(length + 1, 0);
        let read = self.file.read_at(buffer, 0).ok()?;
        buffer.truncate(read);
        (read <= length).then_some(())
    }

    /// Writes `text` over the `before` bytes that were just read, if it may take their place, and says
    /// whether it did.
    pub(crate) fn overwrite(&self, directory: &Path, text: &mut Vec<u8>, before: usize) -> io::Result<bool> {
        // A process that may create no files in the directory would go on until a command makes the text
        // longer, and then fail.
        let rights = Access::WRITE_OK | Access::EXEC_OK;
        let has_room = text.len() <= before && before <= PAGE;
        if !has_room || accessat(CWD, directory, rights, AtFlags::EACCESS).is_err() {
            return Ok(false);
        }
        fill_up(text, before);
        // An editor that overwrites the file empties it first. A text written after that would stay behind
        // the end of the new one.
        match look(&self.file, Path::new(""), AtFlags::EMPTY_PATH) {
            Some((_, length)) if length == before => self.file.write_all_at(text, 0).map(|()| true),
            _ => Ok(false),
        }
    }
}

/// Makes a text that ends with a line break as long as that, with blanks before the break.
fn fill_up(text: &mut Vec<u8>, length: usize) {
    if text.len() < length {
        text.pop();
        text.resize(length - 1, b' ');
        text.push(b'\n');
    }
}

/// Asks for no times: they would make the next write stamp the file again, which costs more than the write.
fn look(directory: impl std::os::fd::AsFd, path: &Path, flags: AtFlags) -> Option<(Stamp, usize)> {
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

/// Another name of the file, or a mount of it alone, has a lock of its own somewhere else.
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
