//! A meter without the feature `metrics`: does nothing.

use std::time::Duration;

use interval_queue_contract::{QueueName, StateError};

use crate::{
    line::LostBecause,
    telemetry::{Outcome, Refused, Sent},
};

#[derive(Clone, Debug, Default)]
pub(crate) struct MetricsLabel {}

#[derive(Clone, Copy, Default)]
pub(crate) struct Levels {}

pub(crate) struct Meter;

impl Meter {
    pub(crate) fn new(_: &QueueName, _: MetricsLabel) -> Self {
        Self
    }

    pub(crate) fn levels(&self, _: usize, _: usize) -> Levels {
        Levels {}
    }

    pub(crate) fn apply(&self, _: Levels) {}

    pub(crate) fn started(&self, _: Option<Duration>, _: Option<Duration>) {}

    pub(crate) fn finished(&self, _: Outcome, _: Duration) {}

    pub(crate) fn slot_lost(&self, _: LostBecause) {}

    pub(crate) fn refused(&self, _: Refused, _: usize) {}

    pub(crate) fn replied<T>(&self, _: Sent, _: Duration, _: &Result<T, StateError>) {}
}
