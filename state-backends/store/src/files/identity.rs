//! The identity of files.

use std::{
    fs::{self, Metadata},
    path::Path,
};

/// The identity of a file: its device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId(u64, u64);

impl FileId {
    /// The identity of the file at `path`. `None`: unreadable.
    pub fn at(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|file| Self::of(&file))
    }

    /// The identity of the file with this metadata.
    #[cfg(unix)]
    pub fn of(file: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(file.dev(), file.ino())
    }

    /// Other systems: no identity is known, and an open file is not easily deleted.
    #[cfg(not(unix))]
    pub fn of(_: &Metadata) -> Self {
        Self(0, 0)
    }
}

/// The number of hard links; 1 where the standard library does not report it.
pub fn names(file: &Metadata) -> u64 {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::nlink(file);
    #[cfg(not(unix))]
    {
        let _ = file;
        1
    }
}
