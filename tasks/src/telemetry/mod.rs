//! What can be seen of a queue of tasks from outside: spans and events through [`tracing`](https://docs.rs/tracing),
//! and with the feature `metrics` also counters, gauges and histograms through [`metrics`](https://docs.rs/metrics).
//!
//! Names, fields, units and labels on this page are kept like functions: they change with a major version only. The
//! texts of events are for people and may change. A field that does not apply is left out. Durations are whole
//! microseconds and end in `_us`; metrics have seconds.
//!
//! # The span
//!
//! All spans and events have the target `interval_queue_tasks`.
//!
//! | span | level | fields |
//! |---|---|---|
//! | `task` | info | `queue`, `id`, `kind`, `attempt` |
//!
//! A handler runs in it. `attempt` counts from 1, and is one more than the runs that failed.
//!
//! # Events
//!
//! | event | level | when | fields besides `queue` |
//! |---|---|---|---|
//! | `task.added` | debug | a task is stored | `id`, `kind` |
//! | `task.leased` | debug | a worker here has it | `id`, `kind`, `token` |
//! | `task.done` | debug | its run ended well | `id`, `kind`, `ran_us` |
//! | `task.failed` | warn | its run ended with an error | `id`, `kind`, `ran_us`, `error`, `permanent` |
//! | `task.retried` | debug | its run asked to be run again | `id`, `kind`, `ran_us`, `error` |
//! | `task.released` | debug | it is given back | `id`, `kind`, `ran_us`, `error` |
//! | `task.lost` | warn | its token is not in force any more: nothing of the run is stored | `id`, `token` |
//! | `task.refused` | warn | its result is too large or could not be stored, and the run counts as failed | `id` |
//! | `schedule.fired` | debug | an instant of a schedule was dealt with here | `schedule`, `at_us`, `fired`, `made` |
//! | `schedule.failed` | warn | it could not be; it is tried again | `schedule`, `at_us`, `error` |
//! | `worker.started` | info | a worker begins | `worker`, `label`, `lease_us`, `jobs` |
//! | `worker.stopped` | info | it has ended | `worker`, `done`, `failed`, `retried`, `released` |
//! | `store.failed` | warn | the steps of a worker fail; they are tried again | `kind`, `error`, `lasting` |
//! | `store.answers` | info | the store answers again, after `store.failed` | `outage_us` |
//! | `watch.failed` | warn | the queue cannot be watched; the worker looks now and then | `kind`, `error` |
//! | `pace.found` | info | a worker found that the queue has a rate, which it had not before | `interval_us` |
//! | `pace.gone` | info | a worker found that the queue has no rate any more | |
//! | `pace.failed` | warn | the rate cannot be read, or starts get no slots; they are tried again | `error` |
//! | `queue.kept` | warn | the queue was opened with other settings than are stored, which hold | `settings`, `asked` |
//!
//! - `kind` of a failure: that of the [error](interval_queue::StateErrorKind), as `TimedOut`.
//! - `store.failed` comes once an outage: at once if it is `lasting`, so that somebody has to act, and else when it has
//!   lasted 5 s. `schedule.failed` and `pace.failed` come at once if their own definition is at fault. If the store fails
//!   for them alone, they come when that has lasted 5 s. A store that fails and answers time and again has four of these
//!   events, and then one a minute at most. [`WorkerHandle::outage`](crate::WorkerHandle::outage) has each outage at once.
//! - `at_us`: the nominal instant, since 1970 on the store's clock.
//! - `fired`: `Made`, `Skipped` or `Kept` as the schedule says, `Stale` if another worker was faster. `made`: how many
//!   tasks; none if what was missed makes none, or if it was only looked whether the task before has ended.
//! - `permanent`: whether the handler said that the task will never succeed.
//! - `ran_us`: left out if the run has not begun.
//! - `task.lost` is also told of a run that has ended when its worker ends and the store has not answered that it
//!   knows.
//!
//! # Metrics
//!
//! With the feature `metrics`. All have the label `queue`.
//!
//! | metric | kind | other label | |
//! |---|---|---|---|
//! | `interval_queue_tasks_added_total` | counter | | tasks that were stored |
//! | `interval_queue_tasks_leased_total` | counter | | tasks that workers of this process have leased |
//! | `interval_queue_tasks_ended_total` | counter | `outcome` | runs that ended |
//! | `interval_queue_tasks_lost_total` | counter | | runs of which nothing is stored |
//! | `interval_queue_tasks_store_errors_total` | counter | | commands that the store did not carry out |
//! | `interval_queue_tasks_workers_cut_off` | gauge | | workers of this process whose steps fail now |
//! | `interval_queue_tasks_run_seconds` | histogram | | from the start of a run to its end |
//! | `interval_queue_tasks_step_seconds` | histogram | | from sending a step to its answer |
//!
//! The `outcome`: `done`, `failed`, `permanent`, `retried`, `released`. How many tasks wait is in the
//! [overview](crate::TaskQueue::overview), which is the same for all processes.

pub(crate) mod name;

use std::time::Duration;

use interval_queue::{Micros, QueueName, StateError};
use interval_queue_task_contract::{Added, Fired, Key, Leased, NewTask, Outcome, Settings, Task, TaskId};
use interval_queue_worker::{Identity, RunId};

use crate::totals::Totals;

/// Tells an event of this crate: of whose telemetry, its level and name, what it says to people, and its fields.
macro_rules! tell {
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

/// Tells what happens to a queue and its workers.
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

    /// Counts so many, under this name.
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

    /// The span of a run.
    pub(crate) fn span(&self, leased: &Leased) -> tracing::Span {
        let task = &leased.task;
        tracing::info_span!(
            target: name::TARGET,
            "task",
            queue = %self.queue,
            id = %task.id,
            kind = %task.kind,
            attempt = task.failures.saturating_add(1)
        )
    }

    pub(crate) fn added(&self, new: &NewTask, added: Added) {
        if let Added::New(id) | Added::Replaced(id) = added {
            tell!(self, DEBUG, "task.added", "a task is stored", id = %id, kind = %new.kind);
            self.count(name::ADDED, None, 1);
        }
    }

    pub(crate) fn leased(&self, task: &Task) {
        let (id, kind, token) = (task.id, &task.kind, task.token);
        tell!(self, DEBUG, "task.leased", "a task is here to be run", id = %id, kind = %kind, token = %token);
        self.count(name::LEASED, None, 1);
    }

    /// A run has ended under a token that was in force, as far as its worker knows.
    pub(crate) fn ended(&self, leased: &Leased, outcome: &Outcome, ran: Option<Duration>) {
        let (id, kind, ran_us) = (leased.task.id, &leased.task.kind, ran.map(us));
        let outcome = match outcome {
            Outcome::Done(_) => {
                tell!(self, DEBUG, "task.done", "a task is done", id = %id, kind = %kind, ran_us);
                "done"
            }
            Outcome::Error(error) | Outcome::Failed(error) => {
                let permanent = matches!(outcome, Outcome::Failed(_));
                tell!(
                    self, WARN, "task.failed", "a run has failed",
                    id = %id, kind = %kind, ran_us, error = error.as_str(), permanent
                );
                if permanent { "permanent" } else { "failed" }
            }
            Outcome::Retry(_, error) => {
                tell!(
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
                tell!(self, DEBUG, "task.released", "a task is given back", id = %id, kind = %kind, ran_us, error);
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
        tell!(
            self, WARN, "task.lost", "somebody else may have the task: nothing of the run is stored",
            id = %id, token = %token
        );
        self.count(name::LOST, None, 1);
    }

    pub(crate) fn refused(&self, id: TaskId) {
        tell!(self, WARN, "task.refused", "a result cannot be stored, and its run counts as failed", id = %id);
    }

    pub(crate) fn fired(&self, schedule: &Key, at: Micros, fired: Fired, made: usize) {
        tell!(
            self, DEBUG, "schedule.fired", "an instant of a schedule has come",
            schedule = %schedule, at_us = at.get(), fired = ?fired, made
        );
    }

    pub(crate) fn not_fired(&self, schedule: &Key, at: Micros, error: &crate::Error) {
        tell!(
            self, WARN, "schedule.failed", "a schedule makes no task here; it is tried again",
            schedule = %schedule, at_us = at.get(), error = %error
        );
    }

    pub(crate) fn worker_started(&self, identity: &Identity) {
        let Identity { worker, label, lease, places, .. } = identity;
        tell!(
            self, INFO, "worker.started", "a worker begins",
            worker = %worker, label = %label, lease_us = lease.get(), jobs = places
        );
    }

    pub(crate) fn worker_stopped(&self, identity: &Identity, totals: Totals) {
        let Totals { done, failed, retried, released, .. } = totals;
        tell!(
            self, INFO, "worker.stopped", "a worker has ended",
            worker = %identity.worker, done, failed, retried, released
        );
    }

    pub(crate) fn store_error(&self, _: &StateError) {
        self.count(name::STORE_ERRORS, None, 1);
    }

    pub(crate) fn unanswered(&self, error: &StateError) {
        tell!(
            self, WARN, "store.failed", "the steps of a worker fail; they are tried again",
            kind = ?error.kind(), error = %error, lasting = !error.is_retryable()
        );
    }

    /// The steps of a worker begin to fail, or do not fail any more.
    #[cfg(feature = "metrics")]
    pub(crate) fn cut_off(&self, begins: bool) {
        let gauge = metrics::gauge!(name::CUT_OFF, name::QUEUE => self.queue.to_string());
        if begins { gauge.increment(1) } else { gauge.decrement(1) }
    }

    #[cfg(not(feature = "metrics"))]
    #[allow(clippy::unused_self, reason = "there is nothing to count with")]
    pub(crate) fn cut_off(&self, _: bool) {}

    pub(crate) fn answers(&self, outage: Duration) {
        tell!(self, INFO, "store.answers", "the store answers again", outage_us = us(outage));
    }

    pub(crate) fn stepped(&self, took: Duration) {
        self.measure(name::STEP, took);
    }

    pub(crate) fn watch_failed(&self, error: &StateError) {
        tell!(
            self, WARN, "watch.failed", "the queue cannot be watched; the worker looks now and then",
            kind = ?error.kind(), error = %error
        );
    }

    /// A worker has found that the queue has a rate, or has none any more.
    pub(crate) fn rate(&self, found: Option<&interval_queue::IntervalQueue>) {
        match found {
            Some(queue) => tell!(
                self,
                INFO,
                "pace.found",
                "the queue has a rate now: starts wait for their slots",
                interval_us = us(queue.interval())
            ),
            None => tell!(self, INFO, "pace.gone", "the queue has no rate any more: tasks start at once"),
        }
    }

    pub(crate) fn unpaced(&self, error: &crate::Error) {
        tell!(self, WARN, "pace.failed", "the rate cannot be read, or starts get no slots; they are tried again", error = %error);
    }

    pub(crate) fn kept(&self, asked: &Settings, settings: &Settings) {
        tell!(
            self, WARN, "queue.kept", "the queue is there with other settings, which hold",
            settings = ?settings, asked = ?asked
        );
    }
}
