//! One attempt at an item: its command, from the slot to its end.

use std::{
    fmt, io,
    os::unix::process::ExitStatusExt,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use indicatif::HumanCount;
use interval_queue::Turn;
use tokio::{
    process::{Child, Command},
    sync::broadcast::{self, error::RecvError},
};

use super::{
    capture::{Capture, Captured},
    output::Grouping,
    overlong::longest_argument,
};
use crate::{
    child::{self, Ended},
    exit::{Failure, NOT_EXECUTABLE, NOT_FOUND},
    program::cannot_execute,
    signals::Signal,
};

/// The reason why an attempt failed.
#[derive(Debug)]
pub(crate) enum Why {
    Code(i32),
    Signal(i32),
    TimedOut,
    NotStarted(Failure),
    Unknown(io::Error),
    OutputLost(io::Error),
    /// The item is too long to be an argument.
    TooLong {
        bytes: u64,
        hint: &'static str,
    },
}

impl Why {
    /// Whether all later attempts will fail for the same reason.
    pub(crate) fn is_for_all(&self) -> bool {
        matches!(self, Why::NotStarted(Failure { code: NOT_EXECUTABLE | NOT_FOUND, passes: false, .. }))
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Code(code) => write!(f, "exit code {code}"),
            Why::Signal(signal) => match signal_hook::low_level::signal_name(*signal) {
                Some(name) => write!(f, "killed by {name}"),
                None => write!(f, "killed by signal {signal}"),
            },
            Why::TimedOut => f.write_str("timed out"),
            Why::NotStarted(failure) => f.write_str(&failure.message),
            Why::Unknown(error) => write!(f, "cannot be waited for: {error}"),
            Why::TooLong { bytes, hint } => {
                let (bytes, most) = (HumanCount(*bytes), HumanCount(longest_argument() as u64));
                write!(f, "{bytes} bytes, an argument has at most {most}{hint}")
            }
            Why::OutputLost(error) => write!(f, "its output is lost: {error}"),
        }
    }
}

/// The result of an attempt and its output.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) result: Result<(), Why>,
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
}

/// A command that was started, or the reason why it was not.
pub(crate) struct Attempt {
    started: Result<Child, Why>,
    turn: Turn,
}

impl Attempt {
    pub(crate) fn start(command: std::process::Command, grouping: Grouping, turn: Turn) -> Self {
        let name = command.get_program().to_owned();
        let mut command = Command::from(command);
        command.stdin(Stdio::null());
        if grouping != Grouping::None {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let started = command.spawn().map_err(|error| {
            let failure = cannot_execute(&name, &error);
            // An argument is too long or contains a NUL, or the process limit is reached: the next
            // item may succeed.
            let is_program = matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory
            );
            Why::NotStarted(Failure { passes: !is_program, ..failure })
        });
        Self { started, turn }
    }

    /// Waits for the end of the command.
    pub(crate) async fn finish(
        self,
        timeout: Option<Duration>,
        mut signals: broadcast::Receiver<Signal>,
    ) -> Outcome {
        let mut child = match self.started {
            Ok(child) => child,
            Err(why) => {
                return Outcome {
                    result: Err(why),
                    stdout: Captured::default(),
                    stderr: Captured::default(),
                };
            }
        };
        let stdout = child.stdout.take().map(Capture::start);
        let stderr = child.stderr.take().map(Capture::start);
        let next_signal = async || loop {
            match signals.recv().await {
                Ok(signal) => return signal,
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return std::future::pending().await,
            }
        };
        let ended = child::wait(&mut child, timeout, next_signal).await;
        // Processes that the command left behind do not count as running.
        drop(self.turn);
        let (stdout, stderr) = tokio::join!(finished(stdout), finished(stderr));
        let mut result = match ended {
            Ok(Ended::ByItself(status)) => judged(status),
            Ok(Ended::TimedOut) => Err(Why::TimedOut),
            Err(error) => Err(Why::Unknown(error)),
        };
        let mut outcome = Outcome { result: Ok(()), stdout, stderr };
        if let Some(error) = outcome.stdout.lost.take().or(outcome.stderr.lost.take()) {
            result = result.and(Err(Why::OutputLost(error)));
        }
        outcome.result = result;
        outcome
    }
}

async fn finished(capture: Option<Capture>) -> Captured {
    match capture {
        Some(capture) => capture.finish().await,
        None => Captured::default(),
    }
}

fn judged(status: ExitStatus) -> Result<(), Why> {
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (_, Some(signal)) => Err(Why::Signal(signal)),
        (code, None) => Err(Why::Code(code.unwrap_or(-1))),
    }
}
