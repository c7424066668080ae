//! Names of metrics and labels, and values of fields and labels.

use interval_queue_contract::{Command, StateErrorKind};

use crate::{Error, ErrorKind};

#[cfg(feature = "metrics")]
pub(super) mod metric {
    pub(in crate::telemetry) const WAITING: &str = "interval_queue_waiting";
    pub(in crate::telemetry) const RUNNING: &str = "interval_queue_running";
    pub(in crate::telemetry) const STARTED: &str = "interval_queue_started_total";
    pub(in crate::telemetry) const FINISHED: &str = "interval_queue_finished_total";
    pub(in crate::telemetry) const SLOTS_USED: &str = "interval_queue_slots_used_total";
    pub(in crate::telemetry) const SLOTS_LOST: &str = "interval_queue_slots_lost_total";
    pub(in crate::telemetry) const REFUSED: &str = "interval_queue_refused_total";
    pub(in crate::telemetry) const STATE_ERRORS: &str = "interval_queue_state_errors_total";
    pub(in crate::telemetry) const WAIT: &str = "interval_queue_wait_seconds";
    pub(in crate::telemetry) const START_LATENESS: &str = "interval_queue_start_lateness_seconds";
    pub(in crate::telemetry) const RUN: &str = "interval_queue_run_seconds";
    pub(in crate::telemetry) const STATE_LATENCY: &str = "interval_queue_state_latency_seconds";
}

#[cfg(feature = "metrics")]
pub(super) mod label {
    /// On every metric.
    pub(in crate::telemetry) const QUEUE: &str = "queue";
    pub(in crate::telemetry) const OUTCOME: &str = "outcome";
    pub(in crate::telemetry) const REASON: &str = "reason";
    pub(in crate::telemetry) const KIND: &str = "kind";
    pub(in crate::telemetry) const COMMAND: &str = "command";
}

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Refused at `add` or later.
    TooLate,
    Full,
    /// Refused at `add` or later.
    Cancelled,
    /// Also by a shutdown while the job waited.
    Closed,
}

impl Refused {
    /// In the order of the enum.
    #[cfg(feature = "metrics")]
    pub(super) const NAMES: [&str; 4] = ["too_late", "full", "cancelled", "closed"];
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
