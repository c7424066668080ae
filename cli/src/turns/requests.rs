//! The requests: lines of stdin.

use std::{
    io::{self, ErrorKind},
    time::Duration,
};

use interval_queue::MAX_WEIGHT;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    time::sleep,
};

use crate::exit::{Failure, IOERR, USAGE};

const MAX_REQUEST_BYTES: usize = 64;
/// Delay before a non-blocking input is read again.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// With this weight. `None`: the weight of the command line.
    Turn(Option<u32>),
    Back,
    Done,
}

#[derive(Debug)]
pub(super) struct Requests<R> {
    input: BufReader<R>,
    /// The beginning of a line.
    begun: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Requests<R> {
    pub(super) fn of(input: R) -> Self {
        Self { input: BufReader::new(input), begun: Vec::new() }
    }

    /// `None`: the end.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no input is lost.
    pub(super) async fn next(&mut self) -> Result<Option<Request>, Failure> {
        loop {
            let bytes = match self.input.fill_buf().await {
                Ok(bytes) => bytes,
                // Another process that shares the terminal or pipe made it non-blocking.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    sleep(RETRY_INTERVAL).await;
                    continue;
                }
                Err(error) => return Err(unreadable(&error)),
            };
            let is_end = bytes.is_empty();
            let line_end = bytes.iter().position(|byte| *byte == b'\n');
            let read = line_end.map_or(bytes.len(), |end| end + 1);
            self.begun.extend_from_slice(&bytes[..line_end.unwrap_or(read)]);
            self.input.consume(read);
            if line_end.is_some() || is_end && !self.begun.is_empty() {
                return Request::of(&std::mem::take(&mut self.begun)).map(Some);
            }
            if is_end {
                return Ok(None);
            }
            if self.begun.len() > MAX_REQUEST_BYTES {
                return Err(no_request(&self.begun));
            }
        }
    }
}

impl Request {
    fn of(line: &[u8]) -> Result<Self, Failure> {
        let text = str::from_utf8(line).map_err(|_| no_request(line))?;
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        match words[..] {
            [] | ["turn"] => Ok(Self::Turn(None)),
            ["turn", weight] => match weight.parse() {
                Ok(weight @ 1..=MAX_WEIGHT) => Ok(Self::Turn(Some(weight))),
                _ => Err(no_request(line)),
            },
            ["back"] => Ok(Self::Back),
            ["done"] => Ok(Self::Done),
            _ => Err(no_request(line)),
        }
    }
}

fn unreadable(error: &io::Error) -> Failure {
    Failure::new(IOERR, format!("cannot read the requests: {error}"))
}

fn no_request(line: &[u8]) -> Failure {
    let shown = String::from_utf8_lossy(&line[..line.len().min(MAX_REQUEST_BYTES)]);
    let shown = shown.escape_debug();
    let right = format!("write turn, turn WEIGHT with 1 to {MAX_WEIGHT}, back or done");
    Failure::new(USAGE, format!("\"{shown}\" is no request: {right}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(input: &[u8]) -> Result<Vec<Request>, String> {
        let mut requests = Requests::of(input);
        let mut taken = Vec::new();
        while let Some(request) = requests.next().await.map_err(|failure| failure.message)? {
            taken.push(request);
        }
        Ok(taken)
    }

    #[tokio::test]
    async fn a_line_is_a_request() {
        use Request::{Back, Done, Turn};
        let requests = all(b"\nturn\r\n turn 3 \nback\ndone\n  \nturn 1000000").await.unwrap();
        assert_eq!(
            requests,
            [Turn(None), Turn(None), Turn(Some(3)), Back, Done, Turn(None), Turn(Some(1_000_000))]
        );
        assert_eq!(all(b"").await, Ok(vec![]));
    }

    #[tokio::test]
    async fn invalid_requests_are_reported() {
        let long = vec![b'x'; 1 << 20];
        for (line, says) in [
            (&b"go\n"[..], "\"go\" is no request: write turn"),
            (b"turn 0", "\"turn 0\" is no request"),
            (b"turn 1000001", "1 to 1000000"),
            (b"turn -1\n", "\"turn -1\""),
            (b"back 2\n", "\"back 2\""),
            (b"a\xffb\x1b\n", "\"a\u{fffd}b\\u{1b}\" is no request"),
            (&long, "xxx\" is no request"),
        ] {
            let error = all(line).await.unwrap_err();
            assert!(error.contains(says) && error.len() < 300, "{error}");
        }
    }
}
