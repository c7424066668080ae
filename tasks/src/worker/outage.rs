//! Outages of the store, as a worker sees them.

use std::time::{Duration, Instant};

use interval_queue::{StateError, StateErrorKind, contract::outage::Outages};

use crate::{error::Error, telemetry::Telemetry};

/// A current outage of the store: the worker's polls fail, and it retries.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outage {
    /// How long the outage has lasted since the first failed poll was sent.
    pub lasted: Duration,
    /// The last error. If [`StateError::is_retryable`] is false, somebody must act, for example
    /// because the disk is full.
    pub error: StateError,
}

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

    pub(super) fn answered(&mut self, telemetry: &Telemetry, now: Instant) {
        self.over(telemetry);
        if let Some(outage) = self.reports.answered(now) {
            telemetry.answers(outage);
        }
    }

    /// Also called when the worker ends.
    pub(super) fn over(&mut self, telemetry: &Telemetry) {
        if self.current.take().is_some() {
            telemetry.cut_off(false);
        }
    }
}

/// Steps fail then, too, and report the outage.
pub(super) fn is_of_the_store(error: &Error) -> bool {
    error
        .state()
        .is_some_and(|error| !matches!(error.kind(), StateErrorKind::Invalid | StateErrorKind::Conflict))
}
