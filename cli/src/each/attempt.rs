//! One attempt at an item: its command, from the slot to its end.

use std::{fmt, io, process::Stdio, time::Duration};

use indicatif::HumanCount;
use interval_queue::Turn;
use tokio::{
    process::Command,
    sync::broadcast::{self, error::RecvError},
};

use super::{output::Grouping, overlong::longest_argument};
use crate::{
    child::{Captured, End, Running},
    exit::{Failure, NOT_EXECUTABLE, NOT_FOUND},
    program::cannot_execute,
    signals::Signal,
};

#[derive(Debug)]
pub(crate) enum Why {
    Ended(End),
    OutputLost(io::Error),
    /// The item is too long to be an argument.
    TooLong {
        bytes: u64,
        hint: &'static str,
    },
}

impl Why {
    /// All later attempts will fail by it, too.
    pub(crate) fn for_all(&self) -> Option<&Failure> {
        match self {
            Why::Ended(End::Unable(failure))
                if [NOT_EXECUTABLE, NOT_FOUND].contains(&failure.code) && !failure.passes =>
            {
                Some(failure)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Ended(end) => end.fmt(f),
            Why::TooLong { bytes, hint } => {
                let (bytes, most) = (HumanCount(*bytes), HumanCount(longest_argument() as u64));
                write!(f, "{bytes} bytes, an argument has at most {most}{hint}")
            }
            Why::OutputLost(error) => write!(f, "its output is lost: {error}"),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// `None`: it succeeded.
    pub(crate) failure: Option<Why>,
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
}

/// A command that was started, or the reason why it was not.
pub(crate) struct Attempt {
    started: Result<Running, Failure>,
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
        let started = Running::start(command).map_err(|error| {
            let failure = cannot_execute(&name, &error);
            // With a long argument, a NUL or the process limit, the next item may succeed.
            let is_program = matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory
            );
            Failure { passes: !is_program, ..failure }
        });
        Self { started, turn }
    }

    pub(crate) async fn finish(
        self,
        timeout: Option<Duration>,
        mut signals: broadcast::Receiver<Signal>,
    ) -> Outcome {
        let mut running = match self.started {
            Ok(running) => running,
            Err(failure) => {
                return Outcome { failure: Some(Why::Ended(End::Unable(failure))), ..Outcome::default() };
            }
        };
        let next_signal = async || loop {
            match signals.recv().await {
                Ok(signal) => return signal,
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return std::future::pending().await,
            }
        };
        let end = running.wait(timeout, next_signal).await;
        // Processes that the command left behind do not count as running.
        drop(self.turn);
        let (mut stdout, mut stderr) = running.output().await;
        let lost = stdout.lost.take().or(stderr.lost.take());
        let failure = match end {
            End::Code(0) => lost.map(Why::OutputLost),
            end => Some(Why::Ended(end)),
        };
        Outcome { failure, stdout, stderr }
    }
}
