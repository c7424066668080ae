//! The location of a directory, and the mark file that shows it belongs to this software.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock, PoisonError},
    time::Duration,
};

use interval_queue_contract::{StateError, StateErrorKind};
use interval_queue_json_file::{Clock, Fsync, parts};
use interval_queue_store::files::{FileId, LockTimeout, cannot, lock::try_lock};

use super::{Builder, Files};

const LAYOUT: u32 = 2;
const MARK: &str = "layout.json";
const EXPLAINED: &str = include_str!("explained.txt");

#[derive(Debug)]
pub(crate) struct Location {
    path: PathBuf,
    options: Builder,
    files: Files,
    is_remote: OnceLock<bool>,
    boot: OnceLock<String>,
    /// The mark file that was read last.
    mark: Mutex<Option<FileId>>,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Mark {
    interval_queue_directory: u32,
}

impl Location {
    pub(crate) fn find(options: Builder) -> Result<Self, StateError> {
        let path = resolve(&options.path)?;
        let files = Files::new(path.clone(), options.fsync == Fsync::Always);
        let location = Self {
            path,
            options,
            files,
            is_remote: OnceLock::new(),
            boot: OnceLock::new(),
            mark: Mutex::default(),
        };
        location.check()?;
        Ok(location)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn options(&self) -> &Builder {
        &self.options
    }

    pub(crate) fn files(&self) -> &Files {
        &self.files
    }

    pub(crate) fn lock_timeout(&self) -> Duration {
        self.options.lock_timeout
    }

    pub(crate) fn lock_wait(&self) -> LockTimeout {
        parts::lock_wait(self.options.lock_timeout)
    }

    /// The lock is not opened yet.
    pub(crate) fn lock(&self) -> parts::LockFile {
        parts::LockFile::new(self.path.join("lock"), try_lock)
    }

    pub(crate) fn is_remote(&self) -> bool {
        *self.is_remote.get_or_init(|| self.options.as_remote || is_remote(&self.path))
    }

    pub(crate) fn clock(&self) -> Clock {
        let of_place = || if self.is_remote() { Clock::FileServer } else { Clock::Host };
        self.options.clock.unwrap_or_else(of_place)
    }

    /// Identifies this start of the host. `-` over a network mount, where each host has its own id,
    /// and where the system reports none.
    pub(crate) fn boot(&self) -> &str {
        self.boot.get_or_init(|| {
            let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
            if self.is_remote() || boot.trim().is_empty() { "-".into() } else { boot.trim().into() }
        })
    }

    /// Checks the mark, too.
    pub(crate) fn is_made(&self) -> Result<bool, StateError> {
        let found = FileId::at(&self.files.at(MARK));
        let mut known = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        // The mark file is replaced, never overwritten, so its id identifies its content.
        if cfg!(unix) && found.is_some() && *known == found {
            return Ok(true);
        }
        *known = None;
        let is_made = self.is_marked()?;
        *known = found.filter(|_| is_made);
        Ok(is_made)
    }

    fn is_marked(&self) -> Result<bool, StateError> {
        let text = match fs::read(self.files.at(MARK)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(cannot("read", &self.files.at(MARK), error)),
        };
        match serde_json::from_slice::<Mark>(&text) {
            Ok(mark) if mark.interval_queue_directory == LAYOUT => Ok(true),
            Ok(mark) if mark.interval_queue_directory < LAYOUT => Err(self.error(
                StateErrorKind::Unsupported,
                format_args!(
                    "has the layout {}, and this program reads {LAYOUT}: finish the work with the program that stored it, or \
                     choose an empty directory",
                    mark.interval_queue_directory
                ),
            )),
            Ok(mark) => Err(self.error(
                StateErrorKind::NewerVersion,
                format_args!(
                    "has the layout {} of a newer version, and this one knows {LAYOUT}: upgrade the program",
                    mark.interval_queue_directory
                ),
            )),
            Err(_) => Err(self.error(
                StateErrorKind::Damaged,
                format_args!(
                    "has a {MARK} that cannot be read: put {{\"interval_queue_directory\": {LAYOUT}}} there"
                ),
            )),
        }
    }

    /// Changes nothing.
    pub(crate) fn check(&self) -> Result<(), StateError> {
        let is_there = self.path.is_dir();
        if is_there && !self.is_made()? {
            self.check_empty()?;
        }
        self.check_rights(if is_there { &self.path } else { self.path.parent().unwrap_or(&self.path) })
    }

    /// A directory that is being created may have the temporary file of the mark.
    fn check_empty(&self) -> Result<(), StateError> {
        let entries = fs::read_dir(&self.path).map_err(|error| cannot("look into", &self.path, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| cannot("look into", &self.path, error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_ours = name.starts_with(MARK) && name.ends_with(".tmp");
            if !is_ours && !self.is_made()? {
                if fs::read_to_string(self.files.at("README")).is_ok_and(|text| text == EXPLAINED) {
                    return Err(self.error(
                        StateErrorKind::Damaged,
                        format_args!(
                            "has lost its {MARK}: put {{\"interval_queue_directory\": {LAYOUT}}} there, if it is whole otherwise"
                        ),
                    ));
                }
                return Err(self.error(
                    StateErrorKind::Foreign,
                    format_args!("has files of something else, such as {name:?}: choose an empty directory, or one that is not there"),
                ));
            }
        }
        Ok(())
    }

    #[cfg(unix)]
    fn check_rights(&self, of: &Path) -> Result<(), StateError> {
        use rustix::fs::{Access, AtFlags, CWD, accessat};
        let rights = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
        accessat(CWD, of, rights, AtFlags::EACCESS).map_err(|error| cannot("use", of, error.into()))
    }

    #[cfg(not(unix))]
    fn check_rights(&self, _: &Path) -> Result<(), StateError> {
        Ok(())
    }

    /// Probes the lock, too.
    pub(crate) fn make(&self) -> Result<(), StateError> {
        if self.is_made()? {
            return Ok(());
        }
        self.check()?;
        match fs::create_dir(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(cannot("make", &self.path, error));
            }
            _ => {}
        }
        let failed = |name: &'static str| move |error| cannot("write", &self.files.at(name), error);
        let mark = format!("{{\"interval_queue_directory\": {LAYOUT}}}\n");
        self.files.replace_beside_others(MARK, &mark).map_err(failed(MARK))?;
        self.lock().probe(self.lock_wait())?;
        self.files.replace_beside_others("README", EXPLAINED).map_err(failed("README"))
    }

    pub(crate) fn error(&self, kind: StateErrorKind, what: impl std::fmt::Display) -> StateError {
        StateError::new(kind, format!("{} {what}", self.path.display()))
    }

    pub(crate) fn held_too_long(&self) -> StateError {
        let timeout = self.lock_timeout();
        let what = format!(
            "was held by another process for {timeout:?}: find it, for example with fuser, and end it"
        );
        self.error(StateErrorKind::Unreachable, what)
    }

    pub(crate) fn failed(&self, verb: &str, name: &str, error: io::Error) -> StateError {
        cannot(verb, &self.files.at(name), error)
    }
}

/// The path is absolute and without symbolic links. The directory need not exist, its parent must.
fn resolve(given: &Path) -> Result<PathBuf, StateError> {
    let invalid =
        |what: &str| StateError::new(StateErrorKind::Invalid, format!("{} {what}", given.display()));
    match fs::canonicalize(given) {
        Ok(real) if real.is_dir() => return Ok(real),
        Ok(_) => {
            return Err(invalid(
                "is a file: give the path of a directory, or file:PATH for a pace in a file",
            ));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(cannot("use", given, error)),
    }
    if given.is_symlink() {
        return Err(invalid("is a link that leads nowhere: give the path of a directory"));
    }
    let (Some(name), Some(parent)) = (given.file_name(), given.parent()) else {
        return Err(invalid("is no path of a directory: give one, as in dir:jobs"));
    };
    let parent = if parent == Path::new("") { Path::new(".") } else { parent };
    let above = fs::canonicalize(parent).map_err(|error| cannot("use", given, error))?;
    Ok(above.join(name))
}

#[cfg(target_os = "linux")]
fn is_remote(path: &Path) -> bool {
    // The directory may not exist yet.
    let file_system = path.ancestors().find_map(|path| rustix::fs::statfs(path).ok());
    // The number is signed on some systems, and longer.
    let kind = file_system.map(|file_system| file_system.f_type as u64 & 0xffff_ffff);
    kind.and_then(interval_queue_store::files::kind_of_remote).is_some()
}

#[cfg(not(target_os = "linux"))]
fn is_remote(_: &Path) -> bool {
    false
}
