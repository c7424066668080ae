//! A disk of its own that is so small that a test can fill it, and a directory in which nothing may be
//! changed.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

/// The size of the disk: room for a database and its log.
const SIZE: &str = "24m";

/// A file system in memory, mounted for one test. It is unmounted when this is dropped.
#[derive(Debug)]
pub struct SmallDisk(TempDir);

impl SmallDisk {
    /// Whether this user may mount.
    pub fn is_possible() -> bool {
        rustix::process::geteuid().is_root()
    }

    /// Mounts an empty one.
    pub fn mount() -> Self {
        let directory =
            tempfile::Builder::new().prefix("interval-queue-disk-").tempdir().expect("a directory");
        let options = format!("size={SIZE},mode=755");
        run("mount", &["-t", "tmpfs", "-o", &options, "tmpfs"], directory.path());
        Self(directory)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Fills it to the last byte. Who replaces a file meanwhile makes room again.
    pub fn fill(&self) {
        let ballast = File::options().create(true).append(true).open(self.ballast());
        let mut ballast = ballast.expect("a file for the ballast");
        for size in [4096, 1] {
            let full = loop {
                if let Err(error) = ballast.write_all(&vec![0; size]) {
                    break error;
                }
            };
            assert_eq!(full.kind(), io::ErrorKind::StorageFull, "{full}");
        }
    }

    /// Takes away what filled it.
    pub fn free(&self) {
        // A process that another thread was about to start meanwhile may hold the file open: its room is free
        // all the same.
        File::create(self.ballast()).expect("empty the ballast");
        fs::remove_file(self.ballast()).expect("take the ballast away");
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a process that a failed test has left may still have files open there.
        run("umount", &["-l"], self.path());
    }
}

/// A directory in which nobody, not even root, may make, rename or delete a file until this is dropped.
#[derive(Debug)]
pub struct Immutable(PathBuf);

impl Immutable {
    /// Makes it so. None if this user may not or the file system cannot.
    pub fn make(directory: &Path) -> Option<Self> {
        chattr("+i", directory).then(|| Self(directory.to_owned()))
    }
}

impl Drop for Immutable {
    fn drop(&mut self) {
        assert!(chattr("-i", &self.0), "cannot make {} changeable again", self.0.display());
    }
}

fn chattr(flag: &str, directory: &Path) -> bool {
    let output = Command::new("chattr").arg(flag).arg(directory).output();
    output.is_ok_and(|output| output.status.success())
}

fn run(program: &str, arguments: &[&str], path: &Path) {
    let output = Command::new(program).args(arguments).arg(path).output().expect("run mount or umount");
    let says = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {says}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs root: scripts/test runs it"]
    fn a_disk_fills_and_is_gone() {
        if !SmallDisk::is_possible() {
            eprintln!("skipped: only root may mount a disk");
            return;
        }
        let disk = SmallDisk::mount();
        let path = disk.path().to_owned();
        let write = || fs::write(path.join("file"), "text").map_err(|error| error.kind());
        assert_eq!(write(), Ok(()));
        fs::remove_file(path.join("file")).unwrap();
        disk.fill();
        assert_eq!(write(), Err(io::ErrorKind::StorageFull));
        let _held = File::open(disk.ballast()).unwrap();
        disk.free();
        assert_eq!(write(), Ok(()));
        drop(disk);
        assert!(!path.exists());
    }

    #[test]
    #[ignore = "needs root: scripts/test runs it"]
    fn in_an_immutable_directory_nothing_changes() {
        let directory = tempfile::tempdir().unwrap();
        let make = || File::create(directory.path().join("file")).map_err(|error| error.kind());
        let Some(immutable) = Immutable::make(directory.path()) else {
            eprintln!("skipped: no directory can be made immutable here");
            return;
        };
        assert_eq!(make().unwrap_err(), io::ErrorKind::PermissionDenied);
        drop(immutable);
        make().unwrap();
    }
}
