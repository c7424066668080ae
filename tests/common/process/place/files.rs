//! Places that are files.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

#[cfg(target_os = "linux")]
use interval_queue_test_support::SmallDisk;

use super::{Backend, Home};

impl Backend {
    /// A JSON file.
    pub fn file() -> Self {
        Self::in_home(Home::Directory(tempfile::tempdir().unwrap()), "file")
    }

    /// An SQLite database, not flushed each time: on a disk that others use a flush takes as long as many
    /// intervals of a scene, with the database locked. What is killed or stopped meanwhile loses nothing
    /// either way.
    pub fn sqlite() -> Self {
        let mut place = Self::in_home(Home::Directory(tempfile::tempdir().unwrap()), "sqlite");
        place.url += "?durability=relaxed";
        place
    }

    /// A directory that has tasks.
    pub fn tasks_in_files() -> Self {
        Self::in_home(Home::Directory(tempfile::tempdir().unwrap()), "dir")
    }

    /// The same on a disk that can be filled. None if this user may not mount one.
    #[cfg(target_os = "linux")]
    pub fn on_small_disk(&self) -> Option<Self> {
        let (scheme, _) = self.url.split_once(':').unwrap();
        SmallDisk::is_possible().then(|| Self::in_home(Home::Disk(SmallDisk::mount()), scheme))
    }

    fn in_home(home: Home, scheme: &str) -> Self {
        let mut place = Self { url: format!("{scheme}:"), home };
        place.url += &place.path().display().to_string();
        place
    }

    pub(super) fn is_sqlite(&self) -> bool {
        self.url.starts_with("sqlite:")
    }

    /// Whether tasks are in files.
    pub fn is_directory(&self) -> bool {
        self.url.starts_with("dir:")
    }

    fn directory(&self) -> Option<&Path> {
        match &self.home {
            Home::Directory(directory) => Some(directory.path()),
            #[cfg(target_os = "linux")]
            Home::Disk(disk) => Some(disk.path()),
            _ => None,
        }
    }

    /// The path of the state file.
    pub fn path(&self) -> PathBuf {
        let name = match self.url.split(':').next() {
            Some("sqlite") => "state.db",
            Some("dir") => "state",
            _ => "state.json",
        };
        self.directory().expect("this scene has a file").join(name)
    }

    #[cfg(target_os = "linux")]
    pub fn disk(&self) -> &SmallDisk {
        match &self.home {
            Home::Disk(disk) => disk,
            _ => panic!("this scene has no disk of its own"),
        }
    }

    /// Asserts that nothing lies beside the state file but what belongs to it: its lock and, while a writer
    /// is at work or has been killed, the file that it writes; beside a database its log and the index of
    /// that, until nobody has it open.
    pub fn assert_no_litter(&self, writers: bool) {
        let Some(directory) = self.directory() else { return };
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<OsString> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        if self.is_sqlite() {
            names.retain(|name| *name != "state.db-wal" && *name != "state.db-shm");
            return assert_eq!(names, ["state.db"]);
        }
        let temporary = names.pop_if(|name| *name == "state.json.tmp");
        assert!(writers || temporary.is_none(), "a temporary file is left");
        assert_eq!(names, ["state.json", "state.json.lock"]);
    }
}
