//! The output of a command, kept until it has ended: a small output in memory, a larger one in an
//! unnamed file.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::unix::fs::FileExt,
    sync::Arc,
};

use super::keep::Keep;

const MAX_MEMORY_BYTES: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Captured {
    /// The first part, once the output exceeds the memory limit.
    file: Option<File>,
    bytes: Vec<u8>,
    /// The error by which the rest was lost.
    pub(crate) lost: Option<io::Error>,
}

impl Captured {
    pub(crate) fn is_empty(&self) -> bool {
        self.file.is_none() && self.bytes.is_empty()
    }

    pub(crate) fn into_reader(self) -> impl Read {
        let file: Box<dyn Read> = match self.file {
            Some(file) => Box::new(Section::new(Arc::new(file), 0, u64::MAX)),
            None => Box::new(io::empty()),
        };
        file.chain(io::Cursor::new(self.bytes))
    }

    /// Moves the output to the file. Blocks on the disk.
    fn put_into_file(&mut self, more: &[u8]) {
        if self.lost.is_some() {
            return;
        }
        let written = (|| {
            let file = match &mut self.file {
                Some(file) => file,
                None => self.file.insert(tempfile::tempfile()?),
            };
            file.write_all(&self.bytes)?;
            self.bytes.clear();
            file.write_all(more)
        })();
        self.lost = written.err();
    }
}

impl Keep for Captured {
    fn keep(&mut self, bytes: &[u8]) {
        if self.blocks(bytes) { self.put_into_file(bytes) } else { self.bytes.extend_from_slice(bytes) }
    }

    fn blocks(&self, bytes: &[u8]) -> bool {
        self.bytes.len() + bytes.len() > MAX_MEMORY_BYTES
    }
}

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

#[cfg(test)]
mod tests {
    use super::{super::pipe::PipeReader, *};

    #[tokio::test]
    async fn little_and_much_come_out_as_they_went_in() {
        for length in [0, 1, MAX_MEMORY_BYTES, MAX_MEMORY_BYTES + 1, MAX_MEMORY_BYTES * 20 + 3] {
            let input: Vec<u8> = (0..length).map(|n| u8::try_from(n % 251).unwrap()).collect();
            let captured = PipeReader::start(io::Cursor::new(input.clone()), Captured::default(), None);
            let captured = captured.finish().await;
            assert_eq!(captured.is_empty(), length == 0);
            assert_eq!(captured.file.is_some(), length > MAX_MEMORY_BYTES);
            assert!(captured.bytes.len() <= MAX_MEMORY_BYTES);
            let mut output = Vec::new();
            captured.into_reader().read_to_end(&mut output).unwrap();
            assert!(output == input, "{length}");
        }
    }
}
