//! A command that is kept: lines go in and come out, until it ends or is ended.

use std::time::Duration;

use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, BufReader},
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
    time::timeout,
};

use super::{
    end::{End, Finished},
    guard::Lease,
    guarded::{Guarded, RunRequest},
    output_tail::OutputTail,
    pipe,
    stderr_writer::StderrHandle,
};
use crate::exit::Failure;

const MAX_LINE_BYTES: u64 = 1 << 20;
const LINES_AHEAD: usize = 16;
/// Time to end after the end of the input.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A line has no newline.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Whole(Vec<u8>),
    /// The output ended within the line.
    Half(Vec<u8>),
    /// It has more than [`MAX_LINE_BYTES`]. Nothing is read after it.
    TooLong,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdleState {
    /// It waits for input.
    Waits,
    /// It has printed a line, which is dropped.
    Printed,
    /// It has ended, or closed its output.
    Ended,
}

/// When dropped, the command is ended.
#[derive(Debug)]
pub(crate) struct KeptCommand {
    input: mpsc::UnboundedSender<Vec<u8>>,
    lines: mpsc::Receiver<Line>,
    /// Ends the command when dropped.
    stop: oneshot::Sender<()>,
    end: JoinHandle<Finished<OutputTail>>,
}

impl KeptCommand {
    /// A `timeout` in the request has no effect.
    pub(crate) fn start(
        request: &RunRequest,
        lease: watch::Receiver<Lease>,
        writer: StderrHandle,
    ) -> Result<Self, Failure> {
        let mut guarded = Guarded::start(request, lease, writer)?;
        let (into, lines) = mpsc::channel(LINES_AHEAD);
        if let Some(stdout) = guarded.stdout() {
            tokio::spawn(read(BufReader::new(stdout), into));
        }
        let (input, pending) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let end = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            let (end, errors) = guarded.follow(pending, None, stopped).await;
            let (stdout, stderr) = pipe::finish(None, errors).await;
            Finished { end, stdout, stderr }
        });
        Ok(Self { input, lines, stop, end })
    }

    /// The line has its newline. Does not wait.
    pub(crate) fn write(&self, line: Vec<u8>) {
        let _ = self.input.send(line);
    }

    /// `None`: the end of the output. Cancel safe.
    pub(crate) async fn next_line(&mut self) -> Option<Line> {
        self.lines.recv().await
    }

    /// As far as is known, without a task.
    pub(crate) fn state(&mut self) -> IdleState {
        match self.lines.try_recv() {
            Ok(_) => IdleState::Printed,
            Err(mpsc::error::TryRecvError::Empty) if !self.end.is_finished() => IdleState::Waits,
            Err(_) => IdleState::Ended,
        }
    }

    /// Ends its input. After [`CLOSE_TIMEOUT`] it gets SIGTERM, 3 s later SIGKILL.
    pub(crate) async fn close(self) -> Finished<OutputTail> {
        let Self { input, lines, stop, mut end } = self;
        drop((input, lines));
        match timeout(CLOSE_TIMEOUT, &mut end).await {
            Ok(finished) => of_task(finished),
            Err(_) => {
                drop(stop);
                of_task(end.await)
            }
        }
    }

    /// SIGTERM, 3 s later SIGKILL.
    pub(crate) async fn kill(self) -> Finished<OutputTail> {
        let Self { stop, end, .. } = self;
        drop(stop);
        of_task(end.await)
    }
}

fn of_task(finished: Result<Finished<OutputTail>, tokio::task::JoinError>) -> Finished<OutputTail> {
    finished.unwrap_or_else(|error| End::GuardGone(error.to_string()).into())
}

async fn read(mut output: impl AsyncBufRead + Unpin, lines: mpsc::Sender<Line>) {
    loop {
        let mut line = Vec::new();
        let read = (&mut output).take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut line).await;
        let line = match read {
            Ok(1..) if line.pop_if(|last| *last == b'\n').is_some() => Line::Whole(line),
            Ok(1..) if line.len() as u64 > MAX_LINE_BYTES => Line::TooLong,
            Ok(1..) => Line::Half(line),
            Ok(0) | Err(_) => return,
        };
        let is_last = line == Line::TooLong;
        if lines.send(line).await.is_err() || is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(output: &[u8]) -> Vec<Line> {
        let (into, mut lines) = mpsc::channel(LINES_AHEAD);
        let reading = tokio::spawn(read(BufReader::new(std::io::Cursor::new(output.to_vec())), into));
        let mut all = Vec::new();
        while let Some(line) = lines.recv().await {
            all.push(line);
        }
        reading.await.unwrap();
        all
    }

    #[tokio::test]
    async fn output_is_read_line_by_line() {
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(
            lines(b"a\n\nb\r\nc").await,
            [whole("a"), whole(""), whole("b\r"), Line::Half(b"c".to_vec())]
        );
        assert_eq!(lines(b"").await, []);
        let longest = "x".repeat(1 << 20);
        assert_eq!(lines(format!("{longest}\nb\n").as_bytes()).await, [whole(&longest), whole("b")]);
        assert_eq!(lines(format!("{longest}x\nb\n").as_bytes()).await, [Line::TooLong]);
        assert_eq!(lines(format!("a\n{longest}xxx").as_bytes()).await, [whole("a"), Line::TooLong]);
    }
}
