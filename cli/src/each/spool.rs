//! Outputs that wait for those of earlier items: one after the other in one unnamed file.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::FileExt,
    sync::Arc,
};

use super::capture::Captured;

/// What waits, by the numbers of the items.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    file: Option<Arc<File>>,
    end: u64,
    held: BTreeMap<u64, Held>,
    next: u64,
}

/// Where an output is: its stdout, then its stderr.
#[derive(Clone, Copy, Debug)]
struct Held {
    at: u64,
    stdout: u64,
    stderr: u64,
}

impl Spool {
    /// Whether nothing has to be printed before the output of that item.
    pub(crate) fn is_next(&self, number: u64) -> bool {
        number == self.next
    }

    /// The output of the next item is printed.
    pub(crate) fn advance(&mut self) {
        self.next += 1;
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// Keeps an output.
    ///
    /// # Errors
    ///
    /// Those of the disk; the output is lost then.
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

    /// The next item with its stdout and stderr, if they are here.
    pub(crate) fn next(&mut self) -> Option<(u64, Text, Text)> {
        let number = self.next;
        let held = self.held.remove(&number)?;
        self.next += 1;
        let (stdout, stderr) = self.sections(held);
        Some((number, stdout, stderr))
    }

    /// The first item that is here with its stdout and stderr, whatever is missing before it.
    pub(crate) fn first(&mut self) -> Option<(u64, Text, Text)> {
        let (number, held) = self.held.pop_first()?;
        let (stdout, stderr) = self.sections(held);
        Some((number, stdout, stderr))
    }

    fn sections(&mut self, Held { at, stdout, stderr }: Held) -> (Text, Text) {
        let file = if self.held.is_empty() {
            // Nobody else needs it; it goes with its readers.
            self.end = 0;
            self.file.take()
        } else {
            self.file.clone()
        };
        let text = |at, length| Text(file.clone().map(|file| Section::new(file, at, length)));
        (text(at, stdout), text(at + stdout, stderr))
    }
}

/// What was kept of an output.
#[derive(Debug)]
pub(crate) struct Text(Option<Section>);

impl Read for Text {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.as_mut().map_or(Ok(0), |section| section.read(buffer))
    }
}

/// A part of a file.
#[derive(Debug)]
pub(crate) struct Section {
    file: Arc<File>,
    at: u64,
    left: u64,
}

impl Section {
    pub(crate) fn new(file: Arc<File>, at: u64, length: u64) -> Self {
        Self { file, at, left: length }
    }
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}
