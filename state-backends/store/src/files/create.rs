//! New files that users of a common group can share.

use std::{io, path::Path};

/// Creates an empty file with all rights that the umask leaves. `false`: the name is taken.
///
/// For files of a library that would grant fewer rights. On Linux the new file is not opened:
/// closing it would end all POSIX locks of the process on it.
///
/// # Errors
///
/// The file cannot be created.
pub fn create(path: &Path) -> io::Result<bool> {
    let created = make(path);
    match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        created => created.map(|()| true),
    }
}

#[cfg(target_os = "linux")]
fn make(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let mode = Mode::from_raw_mode(0o666);
    Ok(mknodat(CWD, path, FileType::RegularFile, mode, 0)?)
}

#[cfg(not(target_os = "linux"))]
fn make(path: &Path) -> io::Result<()> {
    std::fs::OpenOptions::new().write(true).create_new(true).open(path).map(drop)
}
