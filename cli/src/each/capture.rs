//! The output of a command, kept until it has ended: a small output in memory, a larger one in an
//! unnamed file.

use std::{
    fs::File,
    io::{self, Read, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    task::JoinHandle,
    time::timeout,
};

use super::spool::Section;

/// Maximum bytes in memory.
const MAX_MEMORY_BYTES: usize = 64 * 1024;
/// Bytes per read.
const CHUNK_BYTES: usize = 16 * 1024;
/// How long processes that a command left behind may still write to its output.
const LINGER_TIME: Duration = Duration::from_secs(1);

/// The output of a command.
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

    /// Reads the output from its beginning.
    pub(crate) fn into_reader(self) -> impl Read {
        let file: Box<dyn Read> = match self.file {
            Some(file) => Box::new(Section::new(Arc::new(file), 0, u64::MAX)),
            None => Box::new(io::empty()),
        };
        file.chain(io::Cursor::new(self.bytes))
    }

    fn fits(&self, more: &[u8]) -> bool {
        self.bytes.len() + more.len() <= MAX_MEMORY_BYTES
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

/// Captures one pipe of a command. Later output is read and dropped, so that no process gets
/// SIGPIPE.
#[derive(Debug)]
pub(crate) struct Capture {
    kept: Arc<Mutex<Option<Captured>>>,
    end: JoinHandle<()>,
}

impl Capture {
    pub(crate) fn start(pipe: impl AsyncRead + Send + Unpin + 'static) -> Self {
        let kept = Arc::new(Mutex::new(Some(Captured::default())));
        let end = tokio::spawn(read_pipe(pipe, kept.clone()));
        Self { kept, end }
    }

    /// Returns the output after the command has ended.
    pub(crate) async fn finish(self) -> Captured {
        let _ = timeout(LINGER_TIME, self.end).await;
        lock(&self.kept).take().unwrap_or_default()
    }
}

fn lock(kept: &Mutex<Option<Captured>>) -> MutexGuard<'_, Option<Captured>> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn read_pipe(mut pipe: impl AsyncRead + Unpin, kept: Arc<Mutex<Option<Captured>>>) {
    let mut chunk = Vec::with_capacity(CHUNK_BYTES);
    while let Ok(1..) = pipe.read_buf(&mut chunk).await {
        let fits = match &mut *lock(&kept) {
            Some(captured) if !captured.fits(&chunk) => false,
            Some(captured) => {
                captured.bytes.extend_from_slice(&chunk);
                true
            }
            None => true,
        };
        if !fits {
            let kept = kept.clone();
            let written = tokio::task::spawn_blocking(move || {
                if let Some(captured) = &mut *lock(&kept) {
                    captured.put_into_file(&chunk);
                }
                chunk
            });
            match written.await {
                Ok(written) => chunk = written,
                Err(_) => return,
            }
        }
        chunk.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn little_and_much_come_out_as_they_went_in() {
        for length in [0, 1, MAX_MEMORY_BYTES, MAX_MEMORY_BYTES + 1, MAX_MEMORY_BYTES * 20 + 3] {
            let input: Vec<u8> = (0..length).map(|n| u8::try_from(n % 251).unwrap()).collect();
            let captured = Capture::start(io::Cursor::new(input.clone())).finish().await;
            assert_eq!(captured.is_empty(), length == 0);
            assert_eq!(captured.file.is_some(), length > MAX_MEMORY_BYTES);
            assert!(captured.bytes.len() <= MAX_MEMORY_BYTES);
            let mut output = Vec::new();
            captured.into_reader().read_to_end(&mut output).unwrap();
            assert!(output == input, "{length}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_keeps_the_pipe_open_delays_no_end() {
        let (mut theirs, ours) = tokio::io::duplex(10);
        let capture = Capture::start(ours);
        tokio::io::AsyncWriteExt::write_all(&mut theirs, b"said in time").await.unwrap();
        let mut output = Vec::new();
        capture.finish().await.into_reader().read_to_end(&mut output).unwrap();
        assert_eq!(output, b"said in time");
        // The output is dropped, but writing succeeds.
        tokio::io::AsyncWriteExt::write_all(&mut theirs, &[b'x'; 100]).await.unwrap();
    }
}
