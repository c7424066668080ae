//! What tells one file from another.

use std::{
    fs::{self, Metadata},
    path::Path,
};

/// What tells one file from another. Elsewhere than on Unix the standard library cannot tell, and nobody can
/// delete an open file by accident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    #[cfg(unix)]
    device: u64,
    #[cfg(unix)]
    inode: u64,
}

impl Identity {
    /// That of the file that has this path now; none if there is no such file.
    pub fn at(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|file| Self::of(&file))
    }

    /// That of the file that this is said of.
    #[cfg_attr(not(unix), allow(unused_variables, reason = "nothing tells"))]
    pub fn of(file: &Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;
        Self {
            #[cfg(unix)]
            device: file.dev(),
            #[cfg(unix)]
            inode: file.ino(),
        }
    }
}
