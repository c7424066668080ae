//! The state file on disk: read whole and replaced whole.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use interval_queue_contract::{StateError, StateErrorKind};
use interval_queue_store::files::{beside, cannot, directory};

use super::in_place::Overwritable;

/// When the file server drops the file during a read.
const MAX_READS: u32 = 5;

#[derive(Debug)]
pub(crate) struct TextFile {
    path: PathBuf,
    temporary: PathBuf,
    /// Where that is safe.
    in_place: bool,
    flush: Flush,
    /// The file last read.
    overwritable: Option<Overwritable>,
}

/// Data that must be on the disk before a replacement counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flush {
    Nothing,
    /// So that a file server has accepted them.
    Contents,
    ContentsAndName,
}

impl TextFile {
    pub(crate) fn new(path: PathBuf, in_place: bool, flush: Flush) -> Self {
        Self { temporary: beside(&path, ".tmp"), path, in_place, flush, overwritable: None }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// `None`: there is no file. The caller holds the lock, because other processes may overwrite
    /// the file.
    pub(crate) fn read<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Result<Option<&'b [u8]>, StateError> {
        if self.in_place && self.read_in_place(buffer) {
            return Ok(Some(buffer));
        }
        self.overwritable = None;
        Self::read_named(&self.path, buffer)
    }

    fn read_in_place(&mut self, buffer: &mut Vec<u8>) -> bool {
        let mut read = |overwritable: &Overwritable| overwritable.read(&self.path, buffer).is_some();
        if self.overwritable.as_ref().is_some_and(&mut read) {
            return true;
        }
        self.overwritable = Overwritable::open(&self.path).filter(read);
        self.overwritable.is_some()
    }

    pub(crate) fn is_flushed(&self) -> bool {
        self.flush > Flush::Nothing
    }

    /// `None`: there is no file. A rename does not affect the read; an overwrite can tear it unless
    /// the caller holds the lock.
    pub(crate) fn read_named<'b>(
        path: &Path,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Option<&'b [u8]>, StateError> {
        let mut tries = 0;
        loop {
            tries += 1;
            buffer.clear();
            match File::open(path).and_then(|mut file| file.read_to_end(buffer)) {
                Ok(_) => return Ok(Some(buffer)),
                // A missing file is an empty store; a missing directory is an error.
                Err(error) if error.kind() == io::ErrorKind::NotFound && directory(path).is_dir() => {
                    return Ok(None);
                }
                Err(error) if error.kind() == io::ErrorKind::StaleNetworkFileHandle && tries < MAX_READS => {}
                Err(error) => return Err(cannot("read", path, error)),
            }
        }
    }

    /// Replaces the `before` bytes that were just read, all or nothing. The caller has held the
    /// lock since the read.
    pub(crate) fn replace(&mut self, before: usize, text: &mut Vec<u8>) -> Result<(), StateError> {
        let overwritten = match &self.overwritable {
            Some(overwritable) => overwritable.overwrite(directory(&self.path), text, before),
            None => Ok(false),
        };
        match overwritten {
            Ok(true) => Ok(()),
            Ok(false) => self.replace_by_rename(text),
            Err(error) => Err(cannot("write", &self.path, error)),
        }
    }

    fn replace_by_rename(&mut self, text: &[u8]) -> Result<(), StateError> {
        let written = self.write_temporary(text).and_then(|()| {
            fs::rename(&self.temporary, &self.path).map_err(|error| cannot("replace", &self.path, error))
        });
        if written.is_err() {
            // The file may not exist. If removal fails, the next command removes it.
            let _ = fs::remove_file(&self.temporary);
        }
        written?;
        if self.flush == Flush::ContentsAndName {
            self.flush_name()?;
        }
        Ok(())
    }

    fn write_temporary(&self, text: &[u8]) -> Result<(), StateError> {
        let cannot_write = |error| cannot("write", &self.temporary, error);
        let before = match fs::metadata(&self.path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(cannot("look at", &self.path, error)),
        };
        let mut file = self.create_temporary(before.as_ref()).map_err(cannot_write)?;
        if let Some(metadata) = &before {
            keep_rights(&file, metadata).map_err(cannot_write)?;
        }
        file.write_all(text).map_err(cannot_write)?;
        if self.flush >= Flush::Contents {
            file.sync_all().map_err(cannot_write)?;
        }
        Ok(())
    }

    /// The name is fixed, because the lock admits one writer. An existing file was left by a killed
    /// writer.
    fn create_temporary(&self, before: Option<&Metadata>) -> io::Result<File> {
        let mut options = OpenOptions::new();
        // `create_new`: a link planted under this name is never followed.
        options.write(true).create_new(true);
        if let Some(metadata) = before {
            no_more_rights(&mut options, metadata);
        }
        match options.open(&self.temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&self.temporary)?;
                options.open(&self.temporary)
            }
            opened => opened,
        }
    }

    #[cfg(unix)]
    fn flush_name(&self) -> Result<(), StateError> {
        File::open(directory(&self.path)).and_then(|directory| directory.sync_all()).map_err(|error| {
            let text =
                format!("{} is stored but could not be flushed: look after its disk", self.path.display());
            StateError::new(StateErrorKind::Unreachable, text).with_source(error)
        })
    }

    /// Other systems cannot open a directory and need no flush.
    #[cfg(not(unix))]
    fn flush_name(&self) -> Result<(), StateError> {
        Ok(())
    }
}

/// With the old rights, so that a private text is never readable in between.
#[cfg(unix)]
fn no_more_rights(options: &mut OpenOptions, before: &Metadata) {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    options.mode(before.mode() & 0o777);
}

#[cfg(not(unix))]
fn no_more_rights(_: &mut OpenOptions, _: &Metadata) {}

/// Owner and group as far as this user may.
#[cfg(unix)]
fn keep_rights(new: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let fresh = new.metadata()?;
    if (fresh.uid(), fresh.gid()) != (old.uid(), old.gid()) {
        // Otherwise a command of the superuser could lock the owner out. A process that may not
        // change the owner may still set a group of its user.
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

#[cfg(test)]
#[path = "../../tests/unit/file_unit.rs"]
mod tests;
