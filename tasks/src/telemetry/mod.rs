//! Spans and events through [`tracing`](https://docs.rs/tracing). The feature `metrics` adds
//! counters, gauges and histograms through [`metrics`](https://docs.rs/metrics).
//!
//! Names, fields, units and labels on this page change only with a major version. Texts of events
//! are for people and may change. A field that does not apply is left out. Durations in events are
//! whole microseconds and end in `_us`; metrics use seconds.
//!
//! # The span
//!
//! The target of all spans and events is `interval_queue_tasks`.
//!
//! | span | level | fields |
//! |---|---|---|
//! | `task` | info | `queue`, `id`, `kind`, `attempt` |
//!
//! The handler runs in this span. `attempt` counts from 1: one more than the failed runs.
//!
//! # Traces
//!
//! Requires the feature `opentelemetry`, and a subscriber with the layer of
//! [`tracing-opentelemetry`](https://docs.rs/tracing-opentelemetry). An added task stores the trace
//! context of the current span, as a W3C `traceparent`; the span of each run is its child, in
//! whichever process. So the enqueue and all attempts are one trace. Without the feature,
//! [`Task::traceparent`](crate::Task::traceparent) stores a context, and
//! [`Context::traceparent`](crate::Context::traceparent) returns it.
//!
//! # Events
//!
//! | event | level | when | fields besides `queue` |
//! |---|---|---|---|
//! | `task.added` | debug | a task was stored | `id`, `kind` |
//! | `task.leased` | debug | a worker here leased a task | `id`, `kind`, `token` |
//! | `task.done` | debug | a run succeeded | `id`, `kind`, `ran_us` |
//! | `task.failed` | warn | a run failed | `id`, `kind`, `ran_us`, `error`, `permanent` |
//! | `task.retried` | debug | a run asked to run again | `id`, `kind`, `ran_us`, `error` |
//! | `task.released` | debug | a task was released | `id`, `kind`, `ran_us`, `error` |
//! | `task.lost` | warn | a run lost its token, nothing of it is stored | `id`, `token` |
//! | `task.refused` | warn | a result is too large or not storable: the run failed | `id` |
//! | `schedule.fired` | debug | an instant was handled | `schedule`, `at_us`, `fired`, `made` |
//! | `schedule.failed` | warn | a firing failed, it is retried | `schedule`, `at_us`, `error` |
//! | `worker.started` | info | a worker started | `worker`, `label`, `lease_us`, `jobs` |
//! | `worker.stopped` | info | a worker ended | `worker`, `done`, `failed`, `retried`, `released` |
//! | `store.failed` | warn | polls fail and are retried | `kind`, `error`, `lasting` |
//! | `store.answers` | info | the store answers after `store.failed` | `outage_us` |
//! | `watch.failed` | warn | the queue cannot be watched: the worker polls | `kind`, `error` |
//! | `rate.found` | info | a worker noticed a new rate | `interval_us` |
//! | `rate.gone` | info | a worker noticed that the rate was removed | |
//! | `rate.failed` | warn | the rate cannot be read or gives no slots, retried | `error` |
//! | `queue.kept` | warn | the stored settings differ, and apply | `settings`, `asked` |
//!
//! - `kind` of a failure: the [error kind](interval_queue::StateErrorKind), such as `TimedOut`.
//! - `store.failed` is logged once per outage: at once if it is `lasting` (somebody must act), else
//!   after 5 s. [`WorkerHandle::outage`](crate::WorkerHandle::outage) reports each outage at once.
//! - `schedule.failed` and `rate.failed` are logged at once if their own definition is at fault,
//!   and after 5 s if the store fails for them alone.
//! - A store that fails again and again gets four of these events, then at most one a minute.
//! - `at_us`: the nominal instant, since 1970 on the store's clock.
//! - `fired`: `Made`, `Skipped` or `Kept` as the schedule decides, `Stale` if another worker was
//!   faster.
//! - `made`: how many tasks. 0 if missed instants make none, or if only the previous task was
//!   checked.
//! - `permanent`: whether the handler failed the task for good.
//! - `ran_us`: left out if the run has not begun.
//! - `task.lost` is also logged for an ended run whose worker ends before the store has
//!   acknowledged it.
//!
//! # Metrics
//!
//! Requires the feature `metrics`. All metrics have the label `queue`.
//!
//! | metric | kind | other label | |
//! |---|---|---|---|
//! | `interval_queue_tasks_added_total` | counter | | stored tasks |
//! | `interval_queue_tasks_leased_total` | counter | | tasks leased by workers of this process |
//! | `interval_queue_tasks_ended_total` | counter | `outcome` | ended runs |
//! | `interval_queue_tasks_lost_total` | counter | | runs of which nothing is stored |
//! | `interval_queue_tasks_store_errors_total` | counter | | failed commands |
//! | `interval_queue_tasks_workers_cut_off` | gauge | | workers of this process whose polls fail |
//! | `interval_queue_tasks_run_seconds` | histogram | | duration of runs |
//! | `interval_queue_tasks_step_seconds` | histogram | | duration of polls, from request to reply |
//!
//! `outcome`: `done`, `failed`, `permanent`, `retried`, `released`. The number of waiting tasks is
//! in the [overview](crate::TaskQueue::overview), which is the same for all processes.

pub(crate) mod name;
pub(crate) mod trace_context;

use std::time::Duration;

use interval_queue::{Micros, QueueName, StateError};
use interval_queue_task_contract::{Added, Fired, Key, Leased, NewTask, Outcome, Settings, Task, TaskId};
use interval_queue_worker::{Identity, RunId};

use crate::totals::Totals;

macro_rules! emit {
    ($telemetry:expr, $level:ident, $name:literal, $text:literal $(, $($field:tt)+)?) => {
        tracing::event!(
            name: $name,
            target: name::TARGET,
            tracing::Level::$level,
            queue = %$telemetry.queue,
            $($($field)+,)?
            $text
        )
    };
}

#[derive(Debug)]
pub(crate) struct Telemetry {
    queue: QueueName,
}

fn us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl Telemetry {
    pub(crate) fn new(queue: QueueName) -> Self {
        Self { queue }
    }

    #[cfg(feature = "metrics")]
    fn count(&self, metric: &'static str, outcome: Option<&'static str>, count: u64) {
        let queue = self.queue.to_string();
        match outcome {
            Some(outcome) => {
                metrics::counter!(metric, name::QUEUE => queue, name::OUTCOME => outcome).increment(count);
            }
            None => metrics::counter!(metric, name::QUEUE => queue).increment(count),
        }
    }

    #[cfg(not(feature = "metrics"))]
    #[allow(clippy::unused_self, reason = "there is nothing to count with")]
    fn count(&self, _: &'static str, _: Option<&'static str>, _: u64) {}

    #[cfg(feature = "metrics")]
    fn measure(&self, metric: &'static str, took: Duration) {
        metrics::histogram!(metric, name::QUEUE => self.queue.to_string()).record(took.as_secs_f64());
    }

    #[cfg(not(feature = "metrics"))]
    #[allow(clippy::unused_self, reason = "there is nothing to measure with")]
    fn measure(&self, _: &'static str, _: Duration) {}

    pub(crate) fn span(&self, leased: &Leased) -> tracing::Span {
        let task = &leased.task;
        let span = tracing::info_span!(
            target: name::TARGET,
            "task",
            queue = %self.queue,
            id = %task.id,
            kind = %task.kind,
            attempt = task.failures.saturating_add(1)
        );
        #[cfg(feature = "opentelemetry")]
        trace_context::set_parent(&span, task.trace.as_ref());
        span
    }

    pub(crate) fn added(&self, new: &NewTask, added: Added) {
        if let Added::New(id) | Added::Replaced(id) = added {
            emit!(self, DEBUG, "task.added", "a task is stored", id = %id, kind = %new.kind);
            self.count(name::ADDED, None, 1);
        }
    }

    pub(crate) fn leased(&self, task: &Task) {
        let (id, kind, token) = (task.id, &task.kind, task.token);
        emit!(self, DEBUG, "task.leased", "a task is here to be run", id = %id, kind = %kind, token = %token);
        self.count(name::LEASED, None, 1);
    }

    /// Its token was in force, as far as its worker knows.
    pub(crate) fn ended(&self, leased: &Leased, outcome: &Outcome, ran: Option<Duration>) {
        let (id, kind, ran_us) = (leased.task.id, &leased.task.kind, ran.map(us));
        let outcome = match outcome {
            Outcome::Done(_) => {
                emit!(self, DEBUG, "task.done", "a task is done", id = %id, kind = %kind, ran_us);
                "done"
            }
            Outcome::Error(error) | Outcome::Failed(error) => {
                let permanent = matches!(outcome, Outcome::Failed(_));
                emit!(
                    self, WARN, "task.failed", "a run has failed",
                    id = %id, kind = %kind, ran_us, error = error.as_str(), permanent
                );
                if permanent { "permanent" } else { "failed" }
            }
            Outcome::Retry(_, error) => {
                emit!(
                    self, DEBUG, "task.retried", "a run asks to be run again",
                    id = %id, kind = %kind, ran_us, error = error.as_str()
                );
                "retried"
            }
            _ => {
                let error = match outcome {
                    Outcome::Unable(error) => Some(error.as_str()),
                    _ => None,
                };
                emit!(self, DEBUG, "task.released", "a task is given back", id = %id, kind = %kind, ran_us, error);
                "released"
            }
        };
        self.count(name::ENDED, Some(outcome), 1);
        if let Some(ran) = ran {
            self.measure(name::RUN, ran);
        }
    }

    pub(crate) fn lost(&self, run: RunId) {
        let RunId { id, token } = run;
        emit!(
            self, WARN, "task.lost", "somebody else may have the task: nothing of the run is stored",
            id = %id, token = %token
        );
        self.count(name::LOST, None, 1);
    }

    pub(crate) fn refused(&self, id: TaskId) {
        emit!(self, WARN, "task.refused", "a result cannot be stored, and its run counts as failed", id = %id);
    }

    pub(crate) fn fired(&self, schedule: &Key, at: Micros, fired: Fired, made: usize) {
        emit!(
            self, DEBUG, "schedule.fired", "an instant of a schedule has come",
            schedule = %schedule, at_us = at.get(), fired = ?fired, made
        );
    }

    pub(crate) fn not_fired(&self, schedule: &Key, at: Micros, error: &crate::Error) {
        emit!(
            self, WARN, "schedule.failed", "a schedule makes no task here; it is tried again",
            schedule = %schedule, at_us = at.get(), error = %error
        );
    }

    pub(crate) fn worker_started(&self, identity: &Identity) {
        let Identity { worker, label, lease, permits, .. } = identity;
        emit!(
            self, INFO, "worker.started", "a worker begins",
            worker = %worker, label = %label, lease_us = lease.get(), jobs = permits
        );
    }

    pub(crate) fn worker_stopped(&self, identity: &Identity, totals: Totals) {
        let Totals { done, failed, retried, released, .. } = totals;
        emit!(
            self, INFO, "worker.stopped", "a worker has ended",
            worker = %identity.worker, done, failed, retried, released
        );
    }

    pub(crate) fn store_error(&self, _: &StateError) {
        self.count(name::STORE_ERRORS, None, 1);
    }

    pub(crate) fn unanswered(&self, error: &StateError) {
        emit!(
            self, WARN, "store.failed", "the steps of a worker fail; they are tried again",
            kind = ?error.kind(), error = %error, lasting = !error.is_retryable()
        );
    }

    /// `begins`: polls begin to fail; otherwise they succeed again.
    #[cfg(feature = "metrics")]
    pub(crate) fn cut_off(&self, begins: bool) {
        let gauge = metrics::gauge!(name::CUT_OFF, name::QUEUE => self.queue.to_string());
        if begins { gauge.increment(1) } else { gauge.decrement(1) }
    }

    #[cfg(not(feature = "metrics"))]
    #[allow(clippy::unused_self, reason = "there is nothing to count with")]
    pub(crate) fn cut_off(&self, _: bool) {}

    pub(crate) fn answers(&self, outage: Duration) {
        emit!(self, INFO, "store.answers", "the store replies again", outage_us = us(outage));
    }

    pub(crate) fn stepped(&self, took: Duration) {
        self.measure(name::STEP, took);
    }

    pub(crate) fn watch_failed(&self, error: &StateError) {
        emit!(
            self, WARN, "watch.failed", "the queue cannot be watched; the worker polls",
            kind = ?error.kind(), error = %error
        );
    }

    pub(crate) fn rate(&self, found: Option<&interval_queue::IntervalQueue>) {
        match found {
            Some(queue) => emit!(
                self,
                INFO,
                "rate.found",
                "the queue has a rate now: starts wait for their slots",
                interval_us = us(queue.interval())
            ),
            None => emit!(self, INFO, "rate.gone", "the queue has no rate any more: tasks start at once"),
        }
    }

    pub(crate) fn unpaced(&self, error: &crate::Error) {
        emit!(self, WARN, "rate.failed", "the rate cannot be read, or starts get no slots; they are tried again", error = %error);
    }

    pub(crate) fn kept(&self, asked: &Settings, settings: &Settings) {
        emit!(
            self, WARN, "queue.kept", "the queue is there with other settings, which hold",
            settings = ?settings, asked = ?asked
        );
    }
}
