//! How long the store has failed a worker.

use std::time::{Duration, Instant};

use interval_queue::{StateError, StateErrorKind, contract::outage::Outages};

use crate::{error::Error, telemetry::Telemetry};

/// An outage of the store that a worker is in: its steps fail, and it tries again.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outage {
    /// How long it has lasted, from the sending of the first step that failed.
    pub lasted: Duration,
    /// The error of the last step. [`StateError::is_retryable`] is false if somebody has to act: the disk is full, or
    /// the rights were revoked.
    pub error: StateError,
}

/// The outage of the store that a worker is in, and which outages were reported.
#[derive(Debug, Default)]
pub(super) struct StoreOutages {
    current: Option<(Instant, StateError)>,
    reports: Outages,
}

impl StoreOutages {
    pub(super) fn current(&self, now: Instant) -> Option<Outage> {
        let (since, error) = self.current.clone()?;
        Some(Outage { lasted: now.saturating_duration_since(since), error })
    }

    /// A step that was sent then has failed.
    pub(super) fn failed(&mut self, telemetry: &Telemetry, error: &StateError, sent: Instant, now: Instant) {
        if self.current.is_none() {
            telemetry.cut_off(true);
        }
        let since = self.current.as_ref().map_or(sent, |(since, _)| *since);
        self.current = Some((since, error.clone()));
        if self.reports.failed(error.is_retryable(), sent, now) {
            telemetry.unanswered(error);
        }
    }

    /// A step was answered.
    pub(super) fn answered(&mut self, telemetry: &Telemetry, now: Instant) {
        self.over(telemetry);
        if let Some(outage) = self.reports.answered(now) {
            telemetry.answers(outage);
        }
    }

    /// The worker is in no outage any more, or ends.
    pub(super) fn over(&mut self, telemetry: &Telemetry) {
        if self.current.take().is_some() {
            telemetry.cut_off(false);
        }
    }
}

/// Whether the error of another command than a step may be one of the whole store: steps fail then as well, which is
/// reported once for all.
pub(super) fn is_of_the_store(error: &Error) -> bool {
    error
        .state()
        .is_some_and(|error| !matches!(error.kind(), StateErrorKind::Invalid | StateErrorKind::Conflict))
}
