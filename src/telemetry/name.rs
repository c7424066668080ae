//! The values of fields and labels.

use interval_queue_contract::{Command, StateErrorKind};

use crate::{Error, ErrorKind};

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ok,
    Failed,
    Panicked,
    TimedOut,
    Cancelled,
}

impl Outcome {
    /// In the order of the enum.
    pub(super) const NAMES: [&str; 5] = ["ok", "failed", "panicked", "timed_out", "cancelled"];

    /// Of a job that ended with this error.
    pub(crate) fn of(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::Panicked => Self::Panicked,
            ErrorKind::TimedOut => Self::TimedOut,
            _ => Self::Cancelled,
        }
    }

    pub(super) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

pub(super) fn kind(kind: StateErrorKind) -> &'static str {
    match kind {
        StateErrorKind::Unreachable => "unreachable",
        StateErrorKind::TimedOut => "timed_out",
        StateErrorKind::Superseded => "superseded",
        StateErrorKind::NotFound => "not_found",
        StateErrorKind::Conflict => "conflict",
        StateErrorKind::Invalid => "invalid",
        StateErrorKind::Damaged => "damaged",
        StateErrorKind::Foreign => "foreign",
        StateErrorKind::NewerVersion => "newer_version",
        StateErrorKind::Denied => "denied",
        StateErrorKind::Full => "full",
        StateErrorKind::Unsupported => "unsupported",
        _ => "other",
    }
}

/// What sort of command it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Step,
    Change,
    Read,
}

impl Sent {
    /// In the order of the enum.
    #[cfg(feature = "metrics")]
    pub(super) const NAMES: [&str; 3] = ["step", "change", "read"];

    pub(crate) fn of(command: &Command) -> Self {
        match command {
            Command::Step(_) => Self::Step,
            Command::Change(..) => Self::Change,
            _ => Self::Read,
        }
    }
}
