//! What tells one file from another.

use std::{
    fs::{self, Metadata},
    path::Path,
};

/// What tells one file from another: its device and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId(u64, u64);

impl FileId {
    /// That of the file that has this path now; none if there is no such file.
    pub fn at(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|file| Self::of(&file))
    }

    /// That of the file that this is said of.
    #[cfg(unix)]
    pub fn of(file: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(file.dev(), file.ino())
    }

    /// Elsewhere the standard library cannot tell, and nobody can delete an open file by accident.
    #[cfg(not(unix))]
    pub fn of(_: &Metadata) -> Self {
        Self(0, 0)
    }
}

/// How many names a file has. Elsewhere the standard library cannot tell.
pub fn names(file: &Metadata) -> u64 {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::nlink(file);
    #[cfg(not(unix))]
    {
        let _ = file;
        1
    }
}
