//! The end of a command.

use std::{fmt, io, os::unix::process::ExitStatusExt, process::ExitStatus};

use signal_hook::low_level::signal_name;

use crate::exit::Failure;

#[derive(Clone, Debug)]
pub(crate) enum End {
    Code(i32),
    Signal(i32),
    TimedOut,
    /// It was not started, or its end is unknown.
    Unable(Failure),
    /// Stopped on request.
    Stopped,
    /// Its guard ended it, since the lease was about to end.
    LeaseOver,
    /// Its guard ended, and the command was killed.
    GuardGone(String),
}

impl End {
    pub(super) fn of(status: io::Result<ExitStatus>) -> Self {
        match status {
            Ok(status) => match status.signal() {
                Some(signal) => Self::Signal(signal),
                None => Self::Code(status.code().unwrap_or(-1)),
            },
            Err(error) => Self::Unable(Failure::os("cannot wait for the command", &error)),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "killed by {name}"),
                None => write!(f, "killed by signal {signal}"),
            },
            Self::TimedOut => f.write_str("timed out"),
            Self::Unable(failure) => f.write_str(&failure.message),
            Self::Stopped => f.write_str("stopped"),
            Self::LeaseOver => f.write_str("ended with the lease"),
            Self::GuardGone(why) => f.write_str(why),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Finished<O> {
    pub(crate) end: End,
    pub(crate) stdout: O,
    pub(crate) stderr: O,
}

impl<O: Default> From<End> for Finished<O> {
    fn from(end: End) -> Self {
        Self { end, stdout: O::default(), stderr: O::default() }
    }
}
