//! The input of `add`: lines of JSON, read in another thread, a batch at a time.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    os::fd::AsFd,
    thread,
};

use interval_queue_tasks::{Json, MAX_REPLY};
use tokio::sync::mpsc;

use crate::exit::{DATAERR, Failure, IOERR};

const MAX_LINES: usize = 1_000;
/// Bytes after which a batch takes no more lines.
const MAX_BATCH_BYTES: usize = 1 << 20;
const CHUNK_BYTES: usize = 256 * 1024;

/// With its line number. `None`: it was on the command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) number: Option<u64>,
    pub(super) payload: Json,
}

#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) lines: Vec<Line>,
    pub(super) bytes: u64,
    /// Why the input ends here. `None`: it continues, or ended regularly.
    pub(super) failure: Option<Failure>,
}

/// One batch is read ahead.
pub(super) struct Lines(mpsc::Receiver<Batch>);

impl Lines {
    pub(super) fn of_stdin() -> Result<Self, Failure> {
        let cannot = |error| Failure::os("cannot read the standard input", &error);
        let stdin: File = io::stdin().as_fd().try_clone_to_owned().map_err(cannot)?.into();
        let (sender, receiver) = mpsc::channel(1);
        let read = move || {
            let mut source = Source::of(stdin);
            while let Some(batch) = source.batch() {
                let is_last = batch.failure.is_some();
                if sender.blocking_send(batch).is_err() || is_last {
                    break;
                }
            }
        };
        let started = thread::Builder::new().name("input".into()).spawn(read);
        started.map_err(|error| Failure::os("cannot start a thread", &error))?;
        Ok(Self(receiver))
    }

    /// `None`: the end of the input.
    pub(super) async fn next(&mut self) -> Option<Batch> {
        self.0.recv().await
    }
}

pub(super) struct Source<R> {
    input: BufReader<R>,
    number: u64,
}

impl<R: Read> Source<R> {
    pub(super) fn of(input: R) -> Self {
        Self { input: BufReader::with_capacity(CHUNK_BYTES, input), number: 0 }
    }

    /// Lines that are available without waiting, at least one. `None`: the end.
    pub(super) fn batch(&mut self) -> Option<Batch> {
        let mut batch = Batch::default();
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut self.input).take(MAX_REPLY as u64 + 1).read_until(b'\n', &mut line) {
                Ok(0) => return (batch.bytes > 0).then_some(batch),
                Ok(read) => batch.bytes += read as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let text = format!("cannot read the standard input: {error}");
                    batch.failure = Some(Failure::new(IOERR, text));
                    return Some(batch);
                }
            }
            self.number += 1;
            match self.payload(&line) {
                Ok(Some(payload)) => batch.lines.push(Line { number: Some(self.number), payload }),
                Ok(None) => {}
                Err(failure) => {
                    batch.failure = Some(failure);
                    return Some(batch);
                }
            }
            let is_full = batch.lines.len() >= MAX_LINES || batch.bytes >= MAX_BATCH_BYTES as u64;
            if is_full || !self.input.buffer().contains(&b'\n') {
                return Some(batch);
            }
        }
    }

    fn payload(&self, line: &[u8]) -> Result<Option<Json>, Failure> {
        let wrong = |text: String| Failure::new(DATAERR, format!("line {}: {text}", self.number));
        if line.len() > MAX_REPLY {
            return Err(wrong(format!(
                "it has more than {MAX_REPLY} bytes: no queue stores so much in one payload"
            )));
        }
        let text = std::str::from_utf8(line).map_err(|_| {
            let begins: String = String::from_utf8_lossy(line).chars().take(40).collect();
            wrong(format!("{}… is not UTF-8, which JSON has to be", begins.escape_debug()))
        })?;
        match text.trim() {
            "" => Ok(None),
            text => Json::new(text)
                .map(Some)
                .map_err(|error| wrong(error.to_string().replace(char::is_control, " "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &[u8]) -> (Vec<Vec<(u64, String)>>, Option<String>) {
        let mut source = Source::of(input);
        let mut batches = Vec::new();
        while let Some(batch) = source.batch() {
            let lines = batch.lines.iter().map(|line| (line.number.unwrap(), line.payload.to_string()));
            batches.push(lines.collect());
            if let Some(failure) = batch.failure {
                return (batches, Some(failure.message));
            }
        }
        (batches, None)
    }

    #[test]
    fn each_line_is_a_payload() {
        let (batches, failure) = read(b"1\r\n\n {\"a\": [2]} \n\"three\"");
        let all = batches.concat();
        assert_eq!(all, [(1, "1".into()), (3, "{\"a\": [2]}".into()), (4, "\"three\"".into())]);
        assert_eq!(failure, None);
        assert_eq!(read(b"").0, Vec::<Vec<_>>::new());
    }

    #[test]
    fn a_batch_is_bounded() {
        let many: String = (0..2_500).map(|n| format!("{n}\n")).collect();
        let (batches, _) = read(many.as_bytes());
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [1_000, 1_000, 500]);
        let large = format!("\"{}\"\n", "x".repeat(MAX_BATCH_BYTES / 2)).repeat(5);
        let (batches, _) = read(large.as_bytes());
        assert_eq!(batches.concat().len(), 5);
        assert!(batches.iter().all(|batch| batch.len() <= 2));
    }

    #[test]
    fn invalid_json_is_reported_with_its_line() {
        for (line, says) in
            [(&b"hello"[..], "line 3: hello is no JSON"), (b"{\"a\"", "line 3: "), (b"\xff", "not UTF-8")]
        {
            let input = [b"1\n2\n", line, b"\n4\n"].concat();
            let (batches, failure) = read(&input);
            assert_eq!(batches.concat().len(), 2);
            let failure = failure.unwrap();
            assert!(failure.contains(says), "{failure}");
        }
        let long = format!("\"{}\"", "x".repeat(MAX_REPLY));
        assert!(read(long.as_bytes()).1.unwrap().contains("more than 4194304 bytes"));
    }
}
