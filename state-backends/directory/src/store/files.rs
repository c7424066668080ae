//! File operations by names relative to the directory. Reads are bounded; moves and removals are
//! idempotent.

use std::{
    fs::{self, File, OpenOptions},
    hash::{BuildHasher, RandomState},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::OnceLock,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use interval_queue_store::files::names;

use super::Faults;

/// A payload, a result and the history fit in several times over.
pub(crate) const MAX_FILE_BYTES: u64 = 32 << 20;

#[derive(Clone, Debug)]
pub(crate) struct Files {
    root: PathBuf,
    is_flushed: bool,
    pub(crate) faults: Faults,
    /// Whether modification times are fine enough for marks. Set by the first marked write.
    keeps_marks: OnceLock<bool>,
}

#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) text: Vec<u8>,
    /// Modification time, to the nanosecond.
    pub(crate) written: SystemTime,
    file: File,
}

impl Contents {
    /// `false`: another user owns the file, and only the owner may set its times.
    pub(crate) fn mark(&self, mark: u32) -> io::Result<bool> {
        match self.file.set_modified(marked(self.written, mark)) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
            set => set.map(|()| true),
        }
    }
}

/// The file is as the store left it: a write or a replacement by a person removes the mark.
pub(crate) fn is_marked(written: SystemTime, mark: u32) -> bool {
    written.duration_since(UNIX_EPOCH).is_ok_and(|since| since.subsec_nanos() == mark)
}

fn marked(at: SystemTime, mark: u32) -> SystemTime {
    let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    UNIX_EPOCH + Duration::new(seconds, mark)
}

#[derive(Debug)]
pub(crate) enum Unread {
    Missing,
    /// A link, a directory or too long, with the reason for people.
    Odd(String),
    Denied(io::Error),
    Failed(io::Error),
}

impl Files {
    pub(crate) fn new(root: PathBuf, is_flushed: bool) -> Self {
        Self { root, is_flushed, faults: Faults::default(), keeps_marks: OnceLock::new() }
    }

    pub(crate) fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        let name = name.as_ref();
        // `join` would allocate twice.
        let mut path = PathBuf::with_capacity(self.root.as_os_str().len() + 1 + name.as_os_str().len());
        path.push(&self.root);
        path.push(name);
        path
    }

    pub(crate) fn is_flushed(&self) -> bool {
        self.is_flushed
    }

    /// A missing mark means an edit, except where times are coarse: there no file has a mark.
    pub(crate) fn keeps_marks(&self) -> bool {
        *self.keeps_marks.get().unwrap_or(&true)
    }

    /// Reads at most [`MAX_FILE_BYTES`]. Links are not followed.
    pub(crate) fn read(&self, name: impl AsRef<Path>) -> Result<Contents, Unread> {
        let path = self.at(name);
        let file = open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Unread::Missing,
            _ if path.is_symlink() => Unread::Odd("it is a symbolic link, and those are not followed".into()),
            io::ErrorKind::PermissionDenied => Unread::Denied(error),
            _ => Unread::Failed(error),
        })?;
        let metadata = file.metadata().map_err(Unread::Failed)?;
        if !metadata.is_file() {
            return Err(Unread::Odd("it is no regular file".into()));
        }
        if metadata.len() > MAX_FILE_BYTES {
            let text =
                format!("it has {} bytes: the file of a task has at most {MAX_FILE_BYTES}", metadata.len());
            return Err(Unread::Odd(text));
        }
        // An edit that makes the file grow meanwhile removes the mark.
        let mut text = Vec::with_capacity(metadata.len() as usize);
        (&file).take(metadata.len()).read_to_end(&mut text).map_err(Unread::Failed)?;
        Ok(Contents { text, written: metadata.modified().map_err(Unread::Failed)?, file })
    }

    /// Replaces a file of that name, which a killed process left.
    pub(crate) fn write(&self, name: &str, text: &str, mark: Option<u32>) -> io::Result<()> {
        self.faults.step()?;
        let path = self.at(name);
        let open = || OpenOptions::new().write(true).create_new(true).open(&path);
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&path)?;
                open()?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make_directory_of(name)?;
                open()?
            }
            opened => opened?,
        };
        self.fill(&file, text, mark)
    }

    fn fill(&self, mut file: &File, text: &str, mark: Option<u32>) -> io::Result<()> {
        if let Err(dead) = self.faults.step() {
            file.write_all(&text.as_bytes()[..text.len() / 2])?;
            return Err(dead);
        }
        file.write_all(text.as_bytes())?;
        if let Some(mark) = mark {
            file.set_modified(marked(now(), mark))?;
            if self.keeps_marks.get().is_none() {
                let kept = file.metadata()?.modified().is_ok_and(|written| is_marked(written, mark));
                let _ = self.keeps_marks.set(kept);
            }
        }
        if self.is_flushed { file.sync_all() } else { Ok(()) }
    }

    /// `false`: the name is taken.
    pub(crate) fn create(&self, name: &str, text: &str, mark: u32) -> io::Result<bool> {
        self.faults.step()?;
        let path = self.at(name);
        let open = || OpenOptions::new().write(true).create_new(true).open(&path);
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make_directory_of(name)?;
                open()?
            }
            opened => opened?,
        };
        self.fill(&file, text, Some(mark)).map(|()| true)
    }

    /// Overwrites in place, since creating and removing files is expensive. The caller must be able
    /// to write the text again: a crash can leave half of it.
    pub(crate) fn write_over(&self, name: &str, text: &str, mark: u32) -> io::Result<()> {
        self.faults.step()?;
        let path = self.at(name);
        let open = || no_link(OpenOptions::new().write(true).create(true)).open(&path);
        let opened = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make_directory_of(name)?;
                open()
            }
            opened => opened,
        };
        if let Ok(file) = opened
            && let Ok(metadata) = file.metadata()
            && metadata.is_file()
            && names(&metadata) == 1
            && is_own(&metadata)
        {
            if metadata.len() > text.len() as u64 {
                file.set_len(text.len() as u64)?;
            }
            return self.fill(&file, text, Some(mark));
        }
        // The file has a second name, or this user may not write to it or set its times.
        let temporary = format!("{name}.tmp");
        self.write(&temporary, text, Some(mark))?;
        self.rename(&temporary, name)
    }

    /// For a file of only one line. The end of a longer earlier line may remain.
    pub(crate) fn note(&self, name: &str, line: &str) -> io::Result<()> {
        self.faults.step()?;
        // Truncation would force a write to disk on some file systems.
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.at(name))?
            .write_all(line.as_bytes())
    }

    pub(crate) fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        self.replace_by(&format!("{name}.tmp"), name, text)
    }

    /// Atomic, also if several processes do so concurrently: each has a temporary name of its own.
    pub(crate) fn replace_beside_others(&self, name: &str, text: &str) -> io::Result<()> {
        self.replace_by(&format!("{name}.{:016x}.tmp", RandomState::new().hash_one(name)), name, text)
    }

    fn replace_by(&self, temporary: &str, name: &str, text: &str) -> io::Result<()> {
        self.write(temporary, text, None)?;
        self.rename(temporary, name)?;
        self.flush_directory_of(name)
    }

    /// Replaces a file of the new name.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.faults.step()?;
        let rename = || fs::rename(self.at(from), self.at(to));
        match rename() {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_there(from) => {
                self.make_directory_of(to)?;
                rename()
            }
            renamed => renamed,
        }
    }

    /// `false`: the name is taken.
    pub(crate) fn rename_to_free(&self, from: &str, to: &str) -> io::Result<bool> {
        #[cfg(target_os = "linux")]
        {
            use rustix::{
                fs::{CWD, RenameFlags, renameat_with},
                io::Errno,
            };
            self.faults.step()?;
            let rename = || renameat_with(CWD, self.at(from), CWD, self.at(to), RenameFlags::NOREPLACE);
            let mut renamed = rename();
            if renamed == Err(Errno::NOENT) && self.is_there(from) {
                self.make_directory_of(to)?;
                renamed = rename();
            }
            match renamed {
                Ok(()) => return Ok(true),
                Err(Errno::EXIST) => return Ok(false),
                // The file system does not support it.
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if self.is_there(to) {
            return Ok(false);
        }
        self.rename(from, to).map(|()| true)
    }

    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        self.faults.step()?;
        match fs::remove_file(self.at(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// A link counts, wherever it leads.
    pub(crate) fn is_there(&self, name: impl AsRef<Path>) -> bool {
        fs::symlink_metadata(self.at(name)).is_ok()
    }

    /// Since it was read with this time and length. Always `false` where times are coarse.
    pub(crate) fn is_as_read(&self, name: &str, written: SystemTime, length: u64) -> bool {
        self.keeps_marks()
            && fs::symlink_metadata(self.at(name)).is_ok_and(|metadata| {
                metadata.is_file()
                    && metadata.len() == length
                    && metadata.modified().is_ok_and(|modified| modified == written)
            })
    }

    /// The file is as the store left it.
    pub(crate) fn is_marked(&self, name: &str, mark: Option<u32>) -> bool {
        let written = fs::symlink_metadata(self.at(name)).and_then(|metadata| metadata.modified());
        written.is_ok_and(|written| mark.is_some_and(|mark| is_marked(written, mark)))
    }

    pub(crate) fn make_directory_of(&self, name: &str) -> io::Result<()> {
        let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
        self.make_directory(directory)
    }

    pub(crate) fn make_directory(&self, directory: &str) -> io::Result<()> {
        if self.at(directory).is_dir() {
            return Ok(());
        }
        self.faults.step()?;
        // Fails if the root is gone, so that a removed store is not recreated in part.
        fs::metadata(self.at(""))?;
        fs::create_dir_all(self.at(directory))?;
        let mut above = directory;
        while let Some((parent, _)) = above.rsplit_once('/') {
            self.flush_directory(parent)?;
            above = parent;
        }
        self.flush_directory("")
    }

    fn flush_directory_of(&self, name: &str) -> io::Result<()> {
        self.flush_directory(name.rsplit_once('/').map_or("", |(directory, _)| directory))
    }

    pub(crate) fn flush_directory(&self, directory: &str) -> io::Result<()> {
        if !self.is_flushed || !cfg!(unix) {
            return Ok(());
        }
        self.faults.step()?;
        match File::open(self.at(directory)) {
            Ok(open) => open.sync_all(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Only the owner may set the times of a file.
fn is_own(file: &fs::Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::uid(file) == rustix::process::geteuid().as_raw();
    #[cfg(not(unix))]
    {
        let _ = file;
        true
    }
}

fn open(path: &Path) -> io::Result<File> {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A changed access time is not worth a write. Only the owner may use `NOATIME`.
        let flags = no_link_flags() | rustix::fs::OFlags::NOATIME;
        let opened = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path);
        if !matches!(&opened, Err(error) if error.kind() == io::ErrorKind::PermissionDenied) {
            return opened;
        }
    }
    no_link(OpenOptions::new().read(true)).open(path)
}

/// A link is not followed, and a pipe does not block.
#[cfg(unix)]
fn no_link_flags() -> rustix::fs::OFlags {
    rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK
}

fn no_link(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(no_link_flags().bits() as i32);
    }
    options
}

#[allow(clippy::disallowed_methods, reason = "the seconds of a file's time, which nothing decides by")]
fn now() -> SystemTime {
    SystemTime::now()
}
