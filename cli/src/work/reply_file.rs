//! The file into which CMD may write replies while it runs.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use interval_queue_tasks::Context;
use tempfile::TempDir;
use tokio::{task::spawn_blocking, time::sleep};

use super::{
    exit_mapping::TaskOutcome,
    reply::{self, Replies},
};
use crate::exit::chain;

const READ_INTERVAL: Duration = Duration::from_secs(1);
const MAX_BYTES: u64 = 1 << 20;

/// Made for the first run.
#[derive(Debug, Default)]
pub(super) struct ReplyDirectory {
    directory: Mutex<Option<TempDir>>,
    next: AtomicU64,
}

impl ReplyDirectory {
    pub(super) fn remove(&self) {
        if let Some(directory) = self.directory().take() {
            // The guard of a run that goes on has removed it, or will.
            let _ = directory.close();
        }
    }

    /// CMD creates the file. It has no path while no directory can be made.
    pub(super) fn file<'r>(&self, replies: &'r mut Replies) -> ReplyFile<'r> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut directory = self.directory();
        if directory.is_none() {
            *directory = tempfile::Builder::new().prefix("interval-queue-replies-").tempdir().ok();
        }
        let path = directory.as_ref().map(|directory| directory.path().join(format!("{number}.jsonl")));
        ReplyFile { path, replies, read: 0, begun: Vec::new(), said: None }
    }

    fn directory(&self) -> MutexGuard<'_, Option<TempDir>> {
        self.directory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removed when dropped.
#[derive(Debug)]
pub(super) struct ReplyFile<'r> {
    path: Option<PathBuf>,
    replies: &'r mut Replies,
    /// Bytes that were read.
    read: u64,
    /// A line without its end.
    begun: Vec<u8>,
    /// The end of the run by the last line so far. An error is final.
    said: Option<Result<TaskOutcome, String>>,
}

impl ReplyFile<'_> {
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Repeatedly. Cancel safe.
    pub(super) async fn follow<T>(&mut self, context: &Context) -> T {
        loop {
            sleep(READ_INTERVAL).await;
            self.read(context).await;
        }
    }

    /// The rest, after the end of CMD. A reply replaces the outcome of its exit code.
    pub(super) async fn end(mut self, context: &Context, outcome: TaskOutcome) -> TaskOutcome {
        self.read(context).await;
        let last = std::mem::take(&mut self.begun);
        if !last.is_empty() {
            self.line(&last, context);
        }
        match self.said.take() {
            None => outcome,
            Some(Ok(said)) => said,
            Some(Err(why)) => TaskOutcome::Failed(format!("INTERVAL_QUEUE_TASK_REPLY: {why}")),
        }
    }

    async fn read(&mut self, context: &Context) {
        let (Some(path), from) = (self.path.clone(), self.read) else { return };
        if matches!(self.said, Some(Err(_))) {
            return;
        }
        let Ok(read) = spawn_blocking(move || read_from(&path, from)).await else { return };
        match read {
            Ok(bytes) => {
                self.read += bytes.len() as u64;
                self.begun.extend(bytes);
            }
            Err(error) => {
                self.said = Some(Err(chain(&error)));
                return;
            }
        }
        let begun = std::mem::take(&mut self.begun);
        let mut lines = begun.split(|byte| *byte == b'\n').collect::<Vec<_>>();
        self.begun = lines.pop().unwrap_or_default().to_vec();
        lines.into_iter().for_each(|line| self.line(line, context));
        if self.read > MAX_BYTES {
            self.said = Some(Err("the file has more than 1 MiB".into()));
        }
    }

    fn line(&mut self, line: &[u8], context: &Context) {
        if line.trim_ascii().is_empty() || matches!(self.said, Some(Err(_))) {
            return;
        }
        match reply::parse(line) {
            Ok((_, reply)) => {
                if let Some(outcome) = self.replies.apply(reply, context) {
                    self.said = Some(Ok(outcome));
                }
            }
            Err(why) => self.said = Some(Err(why)),
        }
    }
}

impl Drop for ReplyFile<'_> {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// From there on, up to one byte more than the maximum. No file is an empty one.
fn read_from(path: &Path, from: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match std::fs::metadata(path) {
        Ok(meta) if !meta.is_file() => return Err(io::Error::other("it is no file")),
        Ok(meta) if meta.len() <= from => return Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(bytes),
        _ => {}
    }
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    file.take((MAX_BYTES + 1).saturating_sub(from)).read_to_end(&mut bytes)?;
    Ok(bytes)
}
