//! Spans and events through [`tracing`](https://docs.rs/tracing) and, with the feature `metrics`,
//! counters, gauges and histograms through [`metrics`](https://docs.rs/metrics).
//!
//! Names, fields, units and labels on this page change only with a major version; the texts of
//! events may change. A field that does not apply is left out. Durations are whole microseconds and
//! end in `_us`; metrics use seconds.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use std::time::Duration;
//! # use interval_queue::IntervalQueue;
//! use tracing::{Instrument, info, info_span};
//!
//! tracing_subscriber::fmt().init();
//! # let queue = IntervalQueue::builder("mail").interval(Duration::from_millis(100)).connect("memory:").await?;
//! let request = info_span!("request", id = 7);
//! let job = queue.add(async { info!("sent") }).instrument(request).await?;
//! job.await?; // INFO request{id=7}:job{queue=mail … ticket=1 weight=1 priority=0 waited_us=0 late_us=0}: sent
//! # Ok(())
//! # }
//! ```
//!
//! # The span
//!
//! All spans and events have the target `interval_queue`.
//!
//! | span | level | fields |
//! |---|---|---|
//! | `job` | info | `queue`, `shard`, `ticket`, `weight`, `priority`, `attempt`, `waited_us`, `late_us` |
//!
//! It is entered at each poll of the job and closed at its end. Its parent is the span in which the
//! job was added, which stays open until then. Each attempt of a [retried](crate::Retry) job has
//! its own span; `attempt` counts from 1. A [`Turn`](crate::Turn) has no span; its code runs in the
//! caller's. A job of [`Limits`](crate::Limits) has the span of its first queue, which also
//! contains the events of the others.
//!
//! - `queue`: the name of the queue; `shard`: the [id](crate::IntervalQueue::shard_id) of the
//!   shard.
//! - `ticket`: the job's ticket; left out if it [starts alone](crate::WhenStateIsLost).
//! - `waited_us`: from the call of `add` to the start; left out without a subscriber at that call.
//! - `late_us`: from the slot to the start; left out if the job starts alone.
//!
//! # Events
//!
//! | event | level | when | fields besides `queue` and `shard` |
//! |---|---|---|---|
//! | `job.started` | debug | a job or turn starts | `ticket`, `weight`, `priority`, `attempt`, `waited_us`, `late_us` |
//! | `job.finished` | debug; warn if `panicked` or `timed_out` | it ends | `ticket`, `outcome`, `ran_us` |
//! | `job.too_late` | info | a job cannot [start in time](crate::JobOptions::start_within) | `weight`, `priority`, `waited_us` |
//! | `slot.lost` | debug; info if `late_start` | no job starts in a granted slot | `ticket`, `reason` |
//! | `state.failed` | warn | a command failed; no job starts | `kind`, `error` |
//! | `state.answers` | info | the store replies again | `outage_us` |
//! | `shard.alone` | warn | the shard begins to [run alone](crate::WhenStateIsLost) | `shards`, `pace_us` |
//! | `shard.rejoined` | info | the shard no longer runs alone | `settling_us` |
//! | `starts.unspaced` | warn, once | [`SpaceBy::Starts`](crate::SpaceBy::Starts) has no effect | `interval_us`, `lead_us` |
//! | `queue.paused`, `queue.resumed` | info | the shard sees the change | |
//! | `queue.held` | info; debug if shorter than 100 ms | the shard sees the hold | `hold_us` |
//! | `queue.settings` | info | the shard sees new ones | `rates`, `max_running`, `rates_before`, `max_running_before` |
//! | `watch.failed` | warn | watching for [wake-ups](crate::Builder::wake_ups) failed | `kind`, `error` |
//! | `response.held` | info | the queue is held for a response (feature `http`) | `hold_us` |
//! | `response.not_held` | warn | the store did not accept that hold | `hold_us`, `error` |
//! | `response.doubtful` | warn; debug without a hold | a response has an unusable field | `status`, `hold_us` |
//! | `slot.stale` | debug | a service was polled too late for its slot (feature `tower`) | `age_us` |
//! | `queue.implied` | warn | a requested rate has no effect; a stricter one applies | `rate`, `by` |
//! | `queue.kept` | warn | opening kept other settings | `rates`, `max_running`, `rates_asked`, `max_running_asked` |
//! | `queue.replaced` | warn | opening replaced settings | `rates`, `max_running`, `rates_before`, `max_running_before` |
//!
//! An event's name is in its metadata, where OpenTelemetry exporters and filters find it.
//! `job.started` and `job.finished` are in the job's span, those of a turn in the caller's.
//! `job.too_late` is in the span in which the job was added.
//!
//! - `outcome`: `ok` (always for a turn), `failed` (an attempt returned an error), `panicked`,
//!   `timed_out`, `cancelled` (aborted while running).
//! - `reason`: `late_start` (the process stalled, and the start would be much too late), `unwanted`
//!   (the job was cancelled, or gave the slot back because its other limits granted none),
//!   `too_light` (a heavier job came first).
//! - `kind`: the kind of the [error](crate::StateErrorKind), e.g. `timed_out`.
//! - `max_running`: left out if unlimited.
//!
//! Without a subscriber nothing is prepared for spans and events. With one at the level info, a
//! waiting job takes about 150 bytes more. A subscriber that blocks delays jobs: the shard logs its
//! events in the task that starts them.
//!
//! # Metrics
//!
//! With the feature `metrics`. All have the label `queue`.
//!
//! | metric | kind | other label | value |
//! |---|---|---|---|
//! | `interval_queue_waiting` | gauge | | jobs that have not started |
//! | `interval_queue_running` | gauge | | running jobs and turns |
//! | `interval_queue_started_total` | counter | | jobs and turns that started |
//! | `interval_queue_finished_total` | counter | `outcome`, as above | jobs and turns that ended |
//! | `interval_queue_slots_used_total` | counter | | granted slots in which a job or turn started |
//! | `interval_queue_slots_lost_total` | counter | `reason`, as above | granted slots without a start |
//! | `interval_queue_refused_total` | counter | `reason`, as below | jobs refused, or given up later |
//! | `interval_queue_state_errors_total` | counter | `kind`, as above | failed commands |
//! | `interval_queue_wait_seconds` | histogram | | from the call of `add` to the start |
//! | `interval_queue_start_lateness_seconds` | histogram | | from the slot to the start |
//! | `interval_queue_run_seconds` | histogram | | from the start to the end |
//! | `interval_queue_state_latency_seconds` | histogram | `command`: `step`, `change`, `read` | from command to reply |
//!
//! The `reason` of a refusal: `too_late` (because of
//! [`start_within`](crate::JobOptions::start_within)), `full` (no room, and the job does not wait),
//! `cancelled` (with its [group](crate::JobGroup)), `closed` (the queue was closed, or shut down
//! while the job waited). A job cancelled by its handle or by dropping a future is not counted.
//!
//! A job of [`Limits`](crate::Limits) is counted in each of its queues; `too_late` in all of them.
//!
//! The shards of a queue in one process add up; sum over processes for the queue. A slot whose
//! grant did not arrive is counted neither as used nor as lost. Lateness shows the load of the
//! host, waiting time the load of the queue. Install the recorder before you open the queue.
//!
//! **Many queues.** Each value of the label `queue` makes about twenty series (a histogram counted
//! as one). 10,000 queues are too much for most servers: let queues share a label with
//! `Builder::metrics_label`, which adds their numbers up, or leave it out.

mod around;
mod event;
mod meter;
mod name;
mod origin;
mod run;
mod scope;
mod shard;
mod watch;

#[cfg(feature = "metrics")]
pub use meter::MetricsLabel;
#[cfg(not(feature = "metrics"))]
pub(crate) use meter::MetricsLabel;
pub(crate) use name::{Outcome, Refused, Sent};
pub(crate) use origin::{Added, Origin, Traced};
pub(crate) use run::Run;
pub(crate) use scope::Scope;
pub(crate) use shard::Telemetry;
pub(crate) use watch::LineGuard;

const TARGET: &str = "interval_queue";

/// Whether a subscriber or recorder may exist. Costs one load without the feature and a subscriber.
fn is_observed() -> bool {
    cfg!(feature = "metrics")
        || tracing::level_filters::LevelFilter::current() != tracing::level_filters::LevelFilter::OFF
}

fn us(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
