//! Reads the output of a command.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    task::{JoinHandle, spawn_blocking},
    time::timeout,
};

use super::{keep::Keep, stderr_writer::StderrHandle};

const CHUNK_BYTES: usize = 16 * 1024;
/// Time for processes that a command left behind to write.
const LINGER_TIME: Duration = Duration::from_secs(1);

/// Output after the end is read and dropped, so that no process gets SIGPIPE.
#[derive(Debug)]
pub(crate) struct PipeReader<K> {
    kept: Arc<Mutex<Option<K>>>,
    end: JoinHandle<()>,
}

impl<K: Keep> PipeReader<K> {
    /// With a `writer`, the output is also written to stderr.
    pub(crate) fn start(
        pipe: impl AsyncRead + Send + Unpin + 'static,
        keep: K,
        writer: Option<StderrHandle>,
    ) -> Self {
        let kept = Arc::new(Mutex::new(Some(keep)));
        let end = tokio::spawn(read(pipe, kept.clone(), writer));
        Self { kept, end }
    }

    /// Call it after the command has ended.
    pub(crate) async fn finish(self) -> K {
        let _ = timeout(LINGER_TIME, self.end).await;
        lock(&self.kept).take().unwrap_or_default()
    }
}

/// A pipe that was not read has no output.
pub(super) async fn finish<K: Keep>(stdout: Option<PipeReader<K>>, stderr: Option<PipeReader<K>>) -> (K, K) {
    let finish = async |reader: Option<PipeReader<K>>| match reader {
        Some(reader) => reader.finish().await,
        None => K::default(),
    };
    tokio::join!(finish(stdout), finish(stderr))
}

fn lock<K>(kept: &Mutex<Option<K>>) -> MutexGuard<'_, Option<K>> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn read<K: Keep>(
    mut pipe: impl AsyncRead + Unpin,
    kept: Arc<Mutex<Option<K>>>,
    mut writer: Option<StderrHandle>,
) {
    let mut chunk = Vec::with_capacity(CHUNK_BYTES);
    while let Ok(1..) = pipe.read_buf(&mut chunk).await {
        let blocks = match &mut *lock(&kept) {
            Some(keep) if keep.blocks(&chunk) => true,
            Some(keep) => {
                keep.keep(&chunk);
                false
            }
            None => {
                writer = None;
                false
            }
        };
        if blocks {
            let kept = kept.clone();
            let written = spawn_blocking(move || {
                if let Some(keep) = &mut *lock(&kept) {
                    keep.keep(&chunk);
                }
                chunk
            });
            match written.await {
                Ok(written) => chunk = written,
                Err(_) => return,
            }
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
    use super::{super::OutputTail, *};

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
