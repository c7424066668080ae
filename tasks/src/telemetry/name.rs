//! Names of metrics and labels.

pub(super) const TARGET: &str = "interval_queue_tasks";

pub(super) const ADDED: &str = "interval_queue_tasks_added_total";
pub(super) const LEASED: &str = "interval_queue_tasks_leased_total";
pub(super) const ENDED: &str = "interval_queue_tasks_ended_total";
pub(super) const LOST: &str = "interval_queue_tasks_lost_total";
pub(super) const STORE_ERRORS: &str = "interval_queue_tasks_store_errors_total";
#[cfg(feature = "metrics")]
pub(super) const CUT_OFF: &str = "interval_queue_tasks_workers_cut_off";
pub(super) const RUN: &str = "interval_queue_tasks_run_seconds";
pub(super) const STEP: &str = "interval_queue_tasks_step_seconds";

#[cfg(feature = "metrics")]
pub(super) const QUEUE: &str = "queue";
#[cfg(feature = "metrics")]
pub(super) const OUTCOME: &str = "outcome";
