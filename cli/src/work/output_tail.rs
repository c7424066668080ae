//! The output of a command, bounded: its beginning and its end are kept, bytes in between are
//! counted.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    task::JoinHandle,
    time::timeout,
};

use super::stderr_writer::StderrHandle;

/// Bytes per read.
const CHUNK_BYTES: usize = 16 * 1024;
/// How long processes that a command left behind may still write to its output.
const LINGER_TIME: Duration = Duration::from_secs(1);

/// The beginning and the end of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutputTail {
    first: Vec<u8>,
    last: VecDeque<u8>,
    /// Number of dropped bytes.
    pub(crate) missing: u64,
    most: (usize, usize),
}

impl OutputTail {
    /// Keeps up to `first` bytes of the beginning and up to `last` bytes of the end.
    pub(crate) fn of(first: usize, last: usize) -> Self {
        Self { most: (first, last), ..Self::default() }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let (begin, rest) = bytes.split_at(bytes.len().min(self.most.0 - self.first.len()));
        self.first.extend_from_slice(begin);
        // Bytes that the rest pushes out at once are skipped.
        let (skipped, rest) = rest.split_at(rest.len().saturating_sub(self.most.1));
        self.last.extend(rest);
        let over = self.last.len().saturating_sub(self.most.1);
        self.last.drain(..over);
        self.missing += (skipped.len() + over) as u64;
    }

    /// The kept text. A note in between shows how many bytes are missing.
    pub(crate) fn text(&self) -> String {
        let mut bytes = self.first.clone();
        if self.missing > 0 {
            bytes.extend_from_slice(format!("[… {} bytes are left out …]", self.missing).as_bytes());
        }
        bytes.extend(&self.last);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Reads one pipe of a command. Later output is read and dropped, so that no process gets SIGPIPE.
#[derive(Debug)]
pub(crate) struct PipeReader {
    kept: Arc<Mutex<Option<OutputTail>>>,
    end: JoinHandle<()>,
}

impl PipeReader {
    /// Starts to read. With a `writer`, the output is also written to stderr.
    pub(crate) fn start(
        pipe: impl AsyncRead + Send + Unpin + 'static,
        tail: OutputTail,
        writer: Option<StderrHandle>,
    ) -> Self {
        let kept = Arc::new(Mutex::new(Some(tail)));
        let end = tokio::spawn(read_pipe(pipe, kept.clone(), writer));
        Self { kept, end }
    }

    /// Returns the kept output after the command has ended.
    pub(crate) async fn finish(self) -> OutputTail {
        let _ = timeout(LINGER_TIME, self.end).await;
        lock(&self.kept).take().unwrap_or_default()
    }
}

fn lock(kept: &Mutex<Option<OutputTail>>) -> MutexGuard<'_, Option<OutputTail>> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn read_pipe(
    mut pipe: impl AsyncRead + Unpin,
    kept: Arc<Mutex<Option<OutputTail>>>,
    mut writer: Option<StderrHandle>,
) {
    let mut chunk = Vec::with_capacity(CHUNK_BYTES);
    while let Ok(1..) = pipe.read_buf(&mut chunk).await {
        match &mut *lock(&kept) {
            Some(tail) => tail.push(&chunk),
            None => writer = None,
        }
        if let Some(writer) = &mut writer {
            writer.write(&chunk).await;
        }
        chunk.clear();
    }
    if let Some(writer) = writer {
        writer.end().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_kept_whole_and_of_much_the_ends() {
        for chunk in [1, 3, 7, 100] {
            let all: Vec<u8> = (0..100).collect();
            for length in 0..100 {
                let mut tail = OutputTail::of(10, 20);
                all[..length].chunks(chunk).for_each(|bytes| tail.push(bytes));
                let missing = length.saturating_sub(30);
                assert_eq!(tail.missing, missing as u64);
                assert_eq!(tail.first, all[..length.min(10)]);
                assert!(tail.last.iter().eq(&all[(length.min(10) + missing)..length]));
            }
        }
        let mut tail = OutputTail::of(2, 3);
        tail.push(b"abcdefgh");
        assert_eq!(tail.text(), "ab[… 3 bytes are left out …]fgh");
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_with_an_open_pipe_delays_no_end() {
        let (mut theirs, ours) = tokio::io::duplex(10);
        let reader = PipeReader::start(ours, OutputTail::of(100, 0), None);
        tokio::io::AsyncWriteExt::write_all(&mut theirs, b"said in time").await.unwrap();
        assert_eq!(reader.finish().await.text(), "said in time");
        // The output is dropped, but writing succeeds.
        tokio::io::AsyncWriteExt::write_all(&mut theirs, &[b'x'; 100]).await.unwrap();
    }
}
