//! Outputs that wait for the outputs of earlier items, in one unnamed file.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    sync::Arc,
};

use crate::child::{Captured, Section};

/// Outputs by item number.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    file: Option<Arc<File>>,
    end: u64,
    held: BTreeMap<u64, Held>,
    next: u64,
}

/// Position in the file: stdout, then stderr.
#[derive(Clone, Copy, Debug)]
struct Held {
    at: u64,
    stdout: u64,
    stderr: u64,
}

impl Spool {
    pub(crate) fn is_next(&self, number: u64) -> bool {
        number == self.next
    }

    pub(crate) fn advance(&mut self) {
        self.next += 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// # Errors
    ///
    /// The disk failed. The output is lost.
    pub(crate) fn put(&mut self, number: u64, stdout: Captured, stderr: Captured) -> io::Result<()> {
        let at = self.end;
        self.held.insert(number, Held { at, stdout: 0, stderr: 0 });
        if stdout.is_empty() && stderr.is_empty() {
            return Ok(());
        }
        let mut file: &File = match &self.file {
            Some(file) => file,
            None => self.file.insert(Arc::new(tempfile::tempfile()?)),
        };
        file.seek(SeekFrom::Start(at))?;
        let stdout = io::copy(&mut stdout.into_reader(), &mut file)?;
        let stderr = io::copy(&mut stderr.into_reader(), &mut file)?;
        self.end += stdout + stderr;
        self.held.insert(number, Held { at, stdout, stderr });
        Ok(())
    }

    /// `None`: the next item is not stored.
    pub(crate) fn next(&mut self) -> Option<(u64, Text, Text)> {
        let number = self.next;
        let held = self.held.remove(&number)?;
        self.next += 1;
        let (stdout, stderr) = self.sections(held);
        Some((number, stdout, stderr))
    }

    /// The first stored item, even if earlier items are missing.
    pub(crate) fn first(&mut self) -> Option<(u64, Text, Text)> {
        let (number, held) = self.held.pop_first()?;
        let (stdout, stderr) = self.sections(held);
        Some((number, stdout, stderr))
    }

    fn sections(&mut self, Held { at, stdout, stderr }: Held) -> (Text, Text) {
        let file = if self.held.is_empty() {
            // The readers keep the file open until they are dropped.
            self.end = 0;
            self.file.take()
        } else {
            self.file.clone()
        };
        let text = |at, length| Text(file.clone().map(|file| Section::new(file, at, length)));
        (text(at, stdout), text(at + stdout, stderr))
    }
}

#[derive(Debug)]
pub(crate) struct Text(Option<Section>);

impl Read for Text {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.as_mut().map_or(Ok(0), |section| section.read(buffer))
    }
}
