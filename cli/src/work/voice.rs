//! The standard error of this process, as commands that run side by side use it: whole lines, and a terminal that
//! stands still keeps none but them waiting.

use std::{io::Write, thread, time::Duration};

use tokio::sync::mpsc;

use crate::exit::Failure;

/// So many pieces wait to be written.
const AHEAD: usize = 64;
/// A line that is longer is written in pieces.
const LONGEST_LINE: usize = 16 * 1024;
/// How long the end waits for what is still to be written.
const PATIENCE: Duration = Duration::from_secs(1);

/// What writes.
#[derive(Debug)]
pub(crate) struct Voice {
    pieces: mpsc::Sender<Vec<u8>>,
    written: mpsc::Receiver<()>,
}

impl Voice {
    pub(crate) fn start() -> Result<Self, Failure> {
        let (pieces, mut queue) = mpsc::channel::<Vec<u8>>(AHEAD);
        let (done, written) = mpsc::channel(1);
        let write = move || {
            let _done = done;
            while let Some(piece) = queue.blocking_recv() {
                // Nobody is left to hear that stderr is closed.
                let _ = std::io::stderr().write_all(&piece);
            }
        };
        let started = thread::Builder::new().name("stderr".into()).spawn(write);
        started.map_err(|error| Failure::os("cannot start a thread", &error))?;
        Ok(Self { pieces, written })
    }

    /// For one command.
    pub(crate) fn speaker(&self) -> Speaker {
        Speaker::of(self.pieces.clone())
    }

    /// Waits until all is written, for a moment at most.
    pub(crate) async fn end(self) {
        let Self { pieces, mut written } = self;
        drop(pieces);
        let _ = tokio::time::timeout(PATIENCE, written.recv()).await;
    }
}

/// One of those who speak.
#[derive(Clone, Debug)]
pub(crate) struct Speaker {
    pieces: mpsc::Sender<Vec<u8>>,
    /// A line that has not ended.
    begun: Vec<u8>,
}

impl Speaker {
    /// One whose pieces go here.
    pub(super) fn of(pieces: mpsc::Sender<Vec<u8>>) -> Self {
        Self { pieces, begun: Vec::new() }
    }

    /// Says the lines that have ended.
    pub(super) async fn say(&mut self, bytes: &[u8]) {
        self.begun.extend_from_slice(bytes);
        let whole = match self.begun.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            None if self.begun.len() > LONGEST_LINE => self.begun.len(),
            None => return,
        };
        let rest = self.begun.split_off(whole);
        let _ = self.pieces.send(std::mem::replace(&mut self.begun, rest)).await;
    }

    /// Says what is left.
    pub(super) async fn end(mut self) {
        if !self.begun.is_empty() {
            self.begun.push(b'\n');
            let _ = self.pieces.send(self.begun).await;
        }
    }
}
