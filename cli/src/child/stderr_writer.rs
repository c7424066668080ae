//! Stderr of this process, shared by concurrent commands: lines stay whole, and a blocked terminal
//! blocks only the commands.

use std::{fmt, io::Write, sync::Arc, thread, time::Duration};

use tokio::sync::mpsc;

use crate::exit::Failure;

const MAX_PENDING_PIECES: usize = 64;
/// A longer line is written in pieces.
const MAX_LINE_BYTES: usize = 16 * 1024;
/// Linux and POSIX guarantee these.
const ATOMIC_WRITE_BYTES: usize = if cfg!(target_os = "linux") { 4096 } else { 512 };
/// Time limit for pending writes at the end.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct StderrWriter {
    pieces: mpsc::Sender<Vec<u8>>,
    written: mpsc::Receiver<()>,
}

impl StderrWriter {
    pub(crate) fn start() -> Result<Self, Failure> {
        let (pieces, mut queue) = mpsc::channel::<Vec<u8>>(MAX_PENDING_PIECES);
        let (done, written) = mpsc::channel(1);
        let write = move || {
            let _done = done;
            // An empty piece ends the thread: handles may still exist.
            while let Some(piece) = queue.blocking_recv().filter(|piece| !piece.is_empty()) {
                // A closed stderr is no error.
                let _ = pieces_of(&piece).try_for_each(|piece| std::io::stderr().write_all(piece));
            }
        };
        let started = thread::Builder::new().name("stderr".into()).spawn(write);
        started.map_err(|error| Failure::os("cannot start a thread", &error))?;
        Ok(Self { pieces, written })
    }

    pub(crate) fn handle(&self) -> StderrHandle {
        StderrHandle::of(self.pieces.clone())
    }

    /// Waits for pending writes, at most [`FLUSH_TIMEOUT`].
    pub(crate) async fn end(self) {
        let Self { pieces, mut written } = self;
        let end = async {
            let _ = pieces.send(Vec::new()).await;
            written.recv().await
        };
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, end).await;
    }
}

/// Pieces of as many whole lines as one write keeps together, or of one longer line.
fn pieces_of(mut lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let fits = &lines[..lines.len().min(ATOMIC_WRITE_BYTES)];
        let end_of = |bytes: &[u8]| Some(bytes.iter().rposition(|byte| *byte == b'\n')? + 1);
        let first = || lines.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let end = end_of(fits).or_else(first).unwrap_or(lines.len());
        let (piece, rest) = lines.split_at(end);
        lines = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Receives whole lines, of a very long line the beginning.
pub(crate) type LineTap = Arc<dyn Fn(&str) + Send + Sync>;

#[derive(Clone)]
pub(crate) struct StderrHandle {
    pieces: mpsc::Sender<Vec<u8>>,
    tap: Option<LineTap>,
    /// A line without its end.
    begun: Vec<u8>,
    /// Whether the beginning of that line was written.
    is_continued: bool,
}

impl fmt::Debug for StderrHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StderrHandle").field("begun", &self.begun.len()).finish_non_exhaustive()
    }
}

impl StderrHandle {
    pub(super) fn of(pieces: mpsc::Sender<Vec<u8>>) -> Self {
        Self { pieces, tap: None, begun: Vec::new(), is_continued: false }
    }

    pub(crate) fn tapped(self, tap: LineTap) -> Self {
        Self { tap: Some(tap), ..self }
    }

    fn pass_on(&mut self, lines: &[u8]) {
        let Some(tap) = &self.tap else { return };
        let is_continued = std::mem::replace(&mut self.is_continued, !lines.ends_with(b"\n"));
        let rest = match lines.iter().position(|byte| *byte == b'\n') {
            Some(end) if is_continued => &lines[end + 1..],
            None if is_continued => return,
            _ => lines,
        };
        if !rest.is_empty() {
            tap(&String::from_utf8_lossy(rest));
        }
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) {
        self.begun.extend_from_slice(bytes);
        let whole = match self.begun.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            None if self.begun.len() > MAX_LINE_BYTES => self.begun.len(),
            None => return,
        };
        let rest = self.begun.split_off(whole);
        let lines = std::mem::replace(&mut self.begun, rest);
        self.pass_on(&lines);
        let _ = self.pieces.send(lines).await;
    }

    pub(super) async fn end(mut self) {
        if !self.begun.is_empty() {
            let mut last = std::mem::take(&mut self.begun);
            self.pass_on(&last);
            last.push(b'\n');
            let _ = self.pieces.send(last).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn a_tap_gets_lines_and_the_beginning_of_a_long_one() {
        let (pieces, mut written) = mpsc::channel(MAX_PENDING_PIECES);
        let passed = Arc::new(Mutex::new(String::new()));
        let tap = passed.clone();
        let tap: LineTap = Arc::new(move |text| tap.lock().unwrap().push_str(text));
        let mut handle = StderrHandle::of(pieces).tapped(tap);
        let long = "x".repeat(MAX_LINE_BYTES + 1);
        for bytes in ["on", "e\ntwo\nth", "ree\n", &long, &long, "\nfour\n", "\u{fffd}five"] {
            handle.write(bytes.as_bytes()).await;
        }
        handle.write(b"\xff").await;
        handle.end().await;
        let passed = passed.lock().unwrap().clone();
        assert_eq!(passed, format!("one\ntwo\nthree\n{long}four\n\u{fffd}five\u{fffd}"));
        let mut all = Vec::new();
        while let Ok(piece) = written.try_recv() {
            all.extend(piece);
        }
        let begin = format!("one\ntwo\nthree\n{long}{long}\nfour\n");
        assert!(all.starts_with(begin.as_bytes()) && all.ends_with(b"five\xff\n"));
    }

    #[test]
    fn lines_are_written_whole_and_many_at_once() {
        let short = "a line\n".repeat(2_000);
        let long = format!("{}\n", "x".repeat(ATOMIC_WRITE_BYTES * 2));
        let all = format!("{short}{long}{short}no end");
        let pieces: Vec<&[u8]> = pieces_of(all.as_bytes()).collect();
        assert_eq!(pieces.concat(), all.as_bytes());
        assert!(pieces.contains(&long.as_bytes()));
        for piece in &pieces {
            assert!(piece.len() <= ATOMIC_WRITE_BYTES || *piece == long.as_bytes(), "{}", piece.len());
            assert!(piece.ends_with(b"\n") || *piece == b"no end", "{piece:?}");
        }
        assert!(pieces.len() < 2 * short.len() / ATOMIC_WRITE_BYTES + 6, "{}", pieces.len());
    }
}
