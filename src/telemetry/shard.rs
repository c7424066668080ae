//! What a shard tells of itself.

use std::time::{Duration, Instant};

use interval_queue_contract::{QueueName, Settings, ShardId, StateError};
use tracing::Level;

use super::{
    MetricsLabel, Origin, TARGET,
    meter::Meter,
    name,
    run::number,
    us,
    watch::{Rules, Told},
};
use crate::line::{LostBecause, LostSlot, Share};

/// The names it tells them under, and what counts them.
pub(crate) struct Telemetry {
    pub(super) queue: QueueName,
    pub(super) shard: ShardId,
    pub(crate) meter: Meter,
    pub(super) told: Told,
}

impl Telemetry {
    pub(crate) fn new(queue: QueueName, shard: ShardId, label: MetricsLabel) -> Self {
        let meter = Meter::new(&queue, label);
        Self { queue, shard, meter, told: Told::default() }
    }

    pub(crate) fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// A job is given up, because it can start no more in time.
    pub(crate) fn give_up(&self, weight: u32, priority: i32, origin: &Origin, now: Instant) {
        let waited = origin.since().map(|since| now.saturating_duration_since(since));
        match &origin.traced {
            Some(traced) => traced.parent.run(|| self.too_late(weight, priority, waited)),
            None => self.too_late(weight, priority, waited),
        }
    }

    /// A job is refused, because it would start too late.
    pub(crate) fn refuse(&self, weight: u32, priority: i32, waited: Duration) {
        self.too_late(weight, priority, Some(waited));
    }

    fn too_late(&self, weight: u32, priority: i32, waited: Option<Duration>) {
        self.meter.too_late();
        tracing::info!(
            name: "job.too_late",
            target: TARGET,
            queue = %self.queue,
            shard = %self.shard,
            weight,
            priority,
            waited_us = waited.map(us),
            "the job cannot start in time and is given up"
        );
    }

    pub(super) fn slot_lost(&self, lost: &LostSlot) {
        /// The level of an event is part of what is static about it.
        macro_rules! lost {
            ($level:expr) => {
                tracing::event!(
                    name: "slot.lost",
                    target: TARGET,
                    $level,
                    queue = %self.queue,
                    shard = %self.shard,
                    ticket = number(lost.ticket),
                    reason = lost.because.name(),
                    "nothing starts in a slot that was granted"
                )
            };
        }
        self.meter.slot_lost(lost.because);
        match lost.because {
            LostBecause::LateStart => lost!(Level::INFO),
            LostBecause::Unwanted | LostBecause::TooLight => lost!(Level::DEBUG),
        }
    }

    pub(crate) fn state_failed(&self, error: &StateError) {
        tracing::warn!(
            name: "state.failed",
            target: TARGET,
            queue = %self.queue,
            shard = %self.shard,
            kind = name::kind(error.kind()),
            error = %error,
            "the state did not answer"
        );
    }

    pub(crate) fn state_answers(&self, outage: Duration) {
        tracing::info!(
            name: "state.answers",
            target: TARGET,
            queue = %self.queue,
            shard = %self.shard,
            outage_us = us(outage),
            "the state answers again"
        );
    }

    pub(crate) fn runs_alone(&self, share: Share) {
        tracing::warn!(
            name: "shard.alone",
            target: TARGET,
            queue = %self.queue,
            shard = %self.shard,
            shards = share.shards,
            pace_us = us(share.pace),
            "the state is lost: this shard runs alone, at its share of the rate"
        );
    }

    /// It does not run alone any more, if it may have done so.
    pub(crate) fn rejoined(&self, settling: Option<Duration>) {
        let Some(settling) = settling else { return };
        tracing::info!(
            name: "shard.rejoined",
            target: TARGET,
            queue = %self.queue,
            shard = %self.shard,
            settling_us = us(settling),
            "rejoined: keeps to its share of the rate a little longer"
        );
    }

    /// Opening the queue replaced its settings.
    pub(crate) fn replaced(&self, before: Settings, now: Settings) {
        tracing::warn!(
            name: "queue.replaced",
            target: TARGET,
            queue = %self.queue,
            shard = %self.shard,
            interval_us = now.interval.get(),
            max_running = now.max_running,
            interval_before_us = before.interval.get(),
            max_running_before = before.max_running,
            "the queue was there with other settings; they are replaced for all shards"
        );
    }

    /// What the shard sees to be in force, and what was so before.
    pub(super) fn rules_seen(&self, before: Option<Rules>, now: Rules) {
        if let Some(before) = before
            && before.settings != now.settings
        {
            tracing::info!(
                name: "queue.settings",
                target: TARGET,
                queue = %self.queue,
                shard = %self.shard,
                interval_us = now.settings.interval.get(),
                max_running = now.settings.max_running,
                interval_before_us = before.settings.interval.get(),
                max_running_before = before.settings.max_running,
                "the queue has new settings"
            );
        }
        match (before.is_some_and(|before| before.paused), now.paused) {
            (false, true) => tracing::info!(
                name: "queue.paused", target: TARGET, queue = %self.queue, shard = %self.shard, "the queue is paused"
            ),
            (true, false) => tracing::info!(
                name: "queue.resumed", target: TARGET, queue = %self.queue, shard = %self.shard, "the queue is resumed"
            ),
            _ => {}
        }
        if now.held_until > now.at && before.is_none_or(|before| before.held_until != now.held_until) {
            let hold = now.held_until - now.at;
            tracing::info!(
                name: "queue.held",
                target: TARGET,
                queue = %self.queue,
                shard = %self.shard,
                hold_us = hold.get(),
                "the queue is held"
            );
        }
    }
}
