//! The state file on disk: read whole, and replaced whole.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use interval_queue_contract::{StateError, StateErrorKind};

use crate::{error::cannot, path::beside};

/// How often a read begins anew because the file server dropped the file under it.
const MOST_READS: u32 = 5;

/// Where the state is, and how it is replaced.
#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    temporary: PathBuf,
    flush: Flush,
}

/// What reaches the disk before a replacement counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flush {
    /// Whatever the operating system likes.
    Nothing,
    /// The contents, so that a file server has taken them.
    Contents,
    /// The contents and their name.
    ContentsAndName,
}

/// What was read. The default is a file that is not there.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) bytes: Option<Vec<u8>>,
    metadata: Option<Metadata>,
}

impl StateFile {
    pub(crate) fn new(path: PathBuf, flush: Flush) -> Self {
        Self { temporary: beside(&path, ".tmp"), path, flush }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file as it is at one instant: who replaces it meanwhile leaves the open one as it was.
    pub(crate) fn read(&self) -> Result<Contents, StateError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match read(&self.path) {
                Ok(contents) => return Ok(contents),
                // A missing file is an empty one; a missing directory is a mistake.
                Err(error) if error.kind() == io::ErrorKind::NotFound && self.directory().is_dir() => {
                    return Ok(Contents::default());
                }
                // A file server may forget a file that was replaced while it was read.
                Err(error) if error.kind() == io::ErrorKind::StaleNetworkFileHandle && tries < MOST_READS => {
                }
                Err(error) => return Err(cannot("read", &self.path, error)),
            }
        }
    }

    /// Puts `bytes` in the place of what was read. The caller holds the lock.
    ///
    /// Either all of them are there afterwards, or the file is as it was.
    pub(crate) fn replace(&self, before: &Contents, bytes: &[u8]) -> Result<(), StateError> {
        let written = self.write_temporary(before, bytes).and_then(|()| {
            fs::rename(&self.temporary, &self.path).map_err(|error| cannot("replace", &self.path, error))
        });
        if written.is_err() {
            // It may not have been made at all; and what cannot be removed is removed by the next command.
            let _ = fs::remove_file(&self.temporary);
        }
        written?;
        if self.flush == Flush::ContentsAndName {
            self.flush_name()?;
        }
        Ok(())
    }

    fn write_temporary(&self, before: &Contents, bytes: &[u8]) -> Result<(), StateError> {
        let cannot_write = |error| cannot("write", &self.temporary, error);
        let mut file = self.create_temporary(before).map_err(cannot_write)?;
        if let Some(metadata) = &before.metadata {
            keep_rights(&file, metadata).map_err(cannot_write)?;
        }
        file.write_all(bytes).map_err(cannot_write)?;
        if self.flush >= Flush::Contents {
            file.sync_all().map_err(cannot_write)?;
        }
        Ok(())
    }

    /// The name is always the same, since the lock admits one writer. A file of that name was left by a killed one.
    fn create_temporary(&self, before: &Contents) -> io::Result<File> {
        let mut options = OpenOptions::new();
        // Never an existing file, so that a link planted under this name leads nowhere.
        options.write(true).create_new(true);
        no_more_rights(&mut options, before);
        match options.open(&self.temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&self.temporary)?;
                options.open(&self.temporary)
            }
            opened => opened,
        }
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    #[cfg(unix)]
    fn flush_name(&self) -> Result<(), StateError> {
        File::open(self.directory()).and_then(|directory| directory.sync_all()).map_err(|error| {
            let text =
                format!("{} is stored but could not be flushed: look after its disk", self.path.display());
            StateError::new(StateErrorKind::Unreachable, text).with_source(error)
        })
    }

    /// Elsewhere a directory cannot be opened, and needs no flush.
    #[cfg(not(unix))]
    fn flush_name(&self) -> Result<(), StateError> {
        Ok(())
    }
}

fn read(path: &Path) -> io::Result<Contents> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Contents { bytes: Some(bytes), metadata: Some(metadata) })
}

/// A file that others may not read is at no instant one that they may.
#[cfg(unix)]
fn no_more_rights(options: &mut OpenOptions, before: &Contents) {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    if let Some(metadata) = &before.metadata {
        options.mode(metadata.mode() & 0o777);
    }
}

#[cfg(not(unix))]
fn no_more_rights(_: &mut OpenOptions, _: &Contents) {}

/// Gives the new file the mode of the old one, and its owner and group as far as this user may.
#[cfg(unix)]
fn keep_rights(new: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let fresh = new.metadata()?;
    if (fresh.uid(), fresh.gid()) != (old.uid(), old.gid()) {
        // Otherwise one command of the superuser could lock the owner of a private file out. Who may not give
        // files away may still give them to a group of his.
        let _ = fchown(new, Some(old.uid()), Some(old.gid())).or_else(|_| fchown(new, None, Some(old.gid())));
    }
    if fresh.mode() != old.mode() {
        new.set_permissions(old.permissions())?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn keep_rights(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}
