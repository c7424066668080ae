//! What can be seen of a queue from outside: spans and events through [`tracing`](https://docs.rs/tracing),
//! and with the feature `metrics` also counters, gauges and histograms through
//! [`metrics`](https://docs.rs/metrics).
//!
//! Names, fields, units and labels on this page are kept like functions: they change with a major version
//! only. The texts of events are for people and may change. A field that does not apply is left out.
//! Durations are whole microseconds and end in `_us`; metrics have seconds.
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
//! It is entered whenever the job is polled, and closed at its end. Its parent is the span in which the job
//! was added, which so stays open until the job has ended. Each attempt of a job that is [tried
//! again](crate::Retry) has a span of its own, `attempt` counts from 1. What runs in a [`Turn`](crate::Turn)
//! runs in the caller's span and gets no other. A job of [`Limits`](crate::Limits) has one span, that of its
//! first queue; what there is to tell of the others is told in it.
//!
//! - `queue`: the name of the queue; `shard`: the [id](crate::IntervalQueue::shard_id) of the shard.
//! - `ticket`: with which the job starts; left out if it [starts alone](crate::WhenStateIsLost).
//! - `waited_us`: from the call of `add` to the start. Left out if nobody listened at that call.
//! - `late_us`: from the slot to the start. Left out if the job starts alone.
//!
//! # Events
//!
//! | event | level | when | fields besides `queue` and `shard` |
//! |---|---|---|---|
//! | `job.started` | debug | a job or a turn starts | `ticket`, `weight`, `priority`, `attempt`, `waited_us`, `late_us` |
//! | `job.finished` | debug; warn if `panicked` or `timed_out` | it has ended | `ticket`, `outcome`, `ran_us` |
//! | `job.too_late` | info | it is refused or given up because of its [`start_within`](crate::JobOptions::start_within) | `weight`, `priority`, `waited_us` |
//! | `slot.lost` | debug; info if `late_start` | nothing starts in a slot that was granted | `ticket`, `reason` |
//! | `state.failed` | warn | a step got no reply; nothing starts | `kind`, `error` |
//! | `state.answers` | info | the state answers again | `outage_us` |
//! | `shard.alone` | warn | the shard [runs alone](crate::WhenStateIsLost) from now on | `shards`, `pace_us` |
//! | `shard.rejoined` | info | it does so no more | `settling_us` |
//! | `starts.unspaced` | warn | once, where [`SpaceBy::Starts`](crate::SpaceBy::Starts) has no effect | `interval_us`, `lead_us` |
//! | `queue.paused`, `queue.resumed` | info | this shard sees it | |
//! | `queue.held` | info; debug if shorter than 100 ms | this shard sees it | `hold_us` |
//! | `queue.settings` | info | this shard sees new settings | `rates`, `max_running`, `rates_before`, `max_running_before` |
//! | `watch.failed` | warn | the queue cannot be watched for [wake-ups](crate::Builder::wake_ups) | `kind`, `error` |
//! | `response.held` | info | a response asked to wait, and the queue is held (feature `http`) | `hold_us` |
//! | `response.not_held` | warn | it did, but the state did not take the hold | `hold_us`, `error` |
//! | `response.doubtful` | warn; debug without a hold | a field of a response cannot be taken as it is | `status`, `hold_us` |
//! | `slot.stale` | debug | a slot was seen too late by the layer for services, which takes another one (feature `tower`) | `age_us` |
//! | `queue.implied` | warn | a rate that was asked for has no effect beside a stricter one | `rate`, `by` |
//! | `queue.kept` | warn | the queue was opened with other settings than are stored, which hold | `rates`, `max_running`, `rates_asked`, `max_running_asked` |
//! | `queue.replaced` | warn | opening the queue replaced its settings | `rates`, `max_running`, `rates_before`, `max_running_before` |
//!
//! The name of an event is that of its metadata, which an OpenTelemetry exporter and a filter of your own
//! see. `job.started` and `job.finished` of a job happen in its span, those of a turn in the span of the
//! caller. `job.too_late` happens in the span in which the job was added.
//!
//! - `outcome`: `ok`, `failed` (an attempt gave an error), `panicked`, `timed_out`, `cancelled` (aborted
//!   while it ran). That of a turn is `ok`.
//! - `reason`: `late_start` (the start would have come much later than the slot: the process stood still),
//!   `unwanted` (the job was cancelled meanwhile, or gave it back because other limits brought it none),
//!   `too_light` (a heavier job came first).
//! - `kind`: that of the [error](crate::StateErrorKind), as `timed_out`.
//! - `max_running`: left out if there is no limit.
//!
//! Nothing is made ready for the span or the events while nobody subscribes. While somebody does at the level
//! info, a job that waits takes some 150 bytes more. What the shard tells of itself comes from the task that
//! starts its jobs: a subscriber that blocks makes them late.
//!
//! # Metrics
//!
//! With the feature `metrics`. All have the label `queue`.
//!
//! | metric | kind | other label | |
//! |---|---|---|---|
//! | `interval_queue_waiting` | gauge | | jobs that have not started |
//! | `interval_queue_running` | gauge | | jobs and turns that run |
//! | `interval_queue_started_total` | counter | | jobs and turns that started |
//! | `interval_queue_finished_total` | counter | `outcome`, as above | jobs and turns that ended |
//! | `interval_queue_slots_used_total` | counter | | granted slots in which one started |
//! | `interval_queue_slots_lost_total` | counter | `reason`, as above | granted slots in which none did |
//! | `interval_queue_refused_total` | counter | `reason`, as below | jobs that were not started: refused, or given up later |
//! | `interval_queue_state_errors_total` | counter | `kind`, as above | commands that the state did not carry out |
//! | `interval_queue_wait_seconds` | histogram | | from the call of `add` to the start |
//! | `interval_queue_start_lateness_seconds` | histogram | | from the slot to the start |
//! | `interval_queue_run_seconds` | histogram | | from the start to the end |
//! | `interval_queue_state_latency_seconds` | histogram | `command`: `step`, `change`, `read` | from sending a command to its reply |
//!
//! The `reason` of a refusal: `too_late` (because of [`start_within`](crate::JobOptions::start_within)), `full`
//! (there was no room for a job that was not to wait), `cancelled` (with its [group](crate::JobGroup)),
//! `closed` (the queue was closed, or shut down while the job waited). What is cancelled by its handle, or by
//! dropping what waits for it, is not counted.
//!
//! A job of [`Limits`](crate::Limits) is counted in each of its queues, and too late in all of them.
//!
//! The shards of a queue in one process add up; sum over processes for the queue. A slot whose grant was lost
//! on its way is in neither of the two counters. The lateness shows how busy the host is, the waiting time
//! how busy the queue. They use the recorder that is installed when the queue is opened: install it first.
//!
//! **Many queues.** Each value of the label `queue` makes about twenty series, histograms counted as one.
//! With a queue for each of 10,000 customers that is too much for most servers: let them share a label by
//! `Builder::metrics_label`, their numbers then add up, or leave it out.

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

/// The target of all spans and events.
const TARGET: &str = "interval_queue";

/// Whether anybody could want to hear of anything. Without the feature, and with no subscriber, this is one
/// load.
fn anybody_listens() -> bool {
    cfg!(feature = "metrics")
        || tracing::level_filters::LevelFilter::current() != tracing::level_filters::LevelFilter::OFF
}

/// Whole microseconds.
fn us(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
