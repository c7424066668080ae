//! Events of a shard.

use std::time::{Duration, Instant};

use interval_queue_contract::{Memory, Micros, QueueName, Rate, Settings, ShardId, StateError};

use super::{MetricsLabel, Origin, Refused, event::emit, meter::Meter, name, run::number, us};
use crate::line::{LostBecause, LostSlot, Share};

pub(crate) struct Telemetry {
    pub(crate) queue: QueueName,
    pub(super) shard: ShardId,
    pub(crate) meter: Meter,
}

impl Telemetry {
    pub(crate) fn new(queue: QueueName, shard: ShardId, label: MetricsLabel) -> Self {
        let meter = Meter::new(&queue, label);
        Self { queue, shard, meter }
    }

    pub(crate) fn give_up(&self, weight: u32, priority: i32, origin: &Origin, now: Instant) {
        let waited = origin.since().map(|since| now.saturating_duration_since(since));
        match &origin.traced {
            Some(traced) => traced.parent.run(|| self.too_late(weight, priority, waited, 1)),
            None => self.too_late(weight, priority, waited, 1),
        }
    }

    pub(crate) fn too_late(&self, weight: u32, priority: i32, waited: Option<Duration>, jobs: usize) {
        self.meter.refused(Refused::TooLate, jobs);
        emit!(
            self,
            INFO,
            "job.too_late",
            "the job cannot start in time and is given up",
            weight,
            priority,
            waited_us = waited.map(us)
        );
    }

    pub(super) fn slot_lost(&self, lost: &LostSlot) {
        self.meter.slot_lost(lost.because);
        emit!(
            self, INFO if lost.because == LostBecause::LateStart, else DEBUG, "slot.lost",
            "nothing starts in a slot that was granted",
            ticket = number(lost.ticket), reason = lost.because.name()
        );
    }

    pub(crate) fn state_failed(&self, error: &StateError) {
        emit!(
            self, WARN, "state.failed", "the store did not answer",
            kind = name::kind(error.kind()), error = %error
        );
    }

    pub(crate) fn state_answers(&self, outage: Duration) {
        emit!(self, INFO, "state.answers", "the store replies again", outage_us = us(outage));
    }

    pub(crate) fn runs_alone(&self, share: Share) {
        emit!(
            self,
            WARN,
            "shard.alone",
            "the store is lost: this shard runs alone, at its share of the rate",
            shards = share.shards,
            pace_us = us(share.pace)
        );
    }

    pub(crate) fn unspaced(&self, interval: Micros, lead: Micros) {
        emit!(
            self,
            WARN,
            "starts.unspaced",
            "starts cannot keep the interval: there are bursts, or the store is too far away",
            interval_us = interval.get(),
            lead_us = lead.get()
        );
    }

    /// `None`: the shard never ran alone.
    pub(crate) fn rejoined(&self, settling: Option<Duration>) {
        let Some(settling) = settling else { return };
        emit!(
            self,
            INFO,
            "shard.rejoined",
            "rejoined: keeps to its share of the rate a little longer",
            settling_us = us(settling)
        );
    }

    pub(crate) fn replaced(&self, before: Settings, now: Settings) {
        emit!(
            self,
            WARN,
            "queue.replaced",
            "the queue was there with other settings; they are replaced for all shards",
            rates = %now.rates,
            max_running = now.max_running,
            rates_before = %before.rates,
            max_running_before = before.max_running
        );
    }

    pub(crate) fn implied(&self, rate: Rate, by: Rate) {
        emit!(
            self,
            WARN,
            "queue.implied",
            "a rate has no effect, as another one is stricter",
            rate = %rate,
            by = %by
        );
    }

    /// The stored settings differ from the requested ones.
    pub(crate) fn kept(&self, asked: Settings, kept: Settings) {
        emit!(
            self,
            WARN,
            "queue.kept",
            "the queue is there with other settings, which hold; `OnExisting::Replace` replaces them",
            rates = %kept.rates,
            max_running = kept.max_running,
            rates_asked = %asked.rates,
            max_running_asked = asked.max_running
        );
    }

    pub(super) fn rules_seen(&self, before: Option<Memory>, now: Memory) {
        if let Some(before) = before.filter(|before| before.settings() != now.settings()) {
            emit!(
                self,
                INFO,
                "queue.settings",
                "the queue has new settings",
                rates = %now.meters.rates(),
                max_running = now.max_running,
                rates_before = %before.meters.rates(),
                max_running_before = before.max_running
            );
        }
        match (before.is_some_and(|before| before.paused), now.paused) {
            (false, true) => emit!(self, INFO, "queue.paused", "the queue is paused"),
            (true, false) => emit!(self, INFO, "queue.resumed", "the queue is resumed"),
            _ => {}
        }
        if now.held_until > now.at && before.is_none_or(|before| before.held_until != now.held_until) {
            let hold = now.held_until - now.at;
            // Joint jobs hold a queue this briefly.
            let short = hold < Micros::from_millis(100);
            emit!(self, DEBUG if short, else INFO, "queue.held", "the queue is held", hold_us = hold.get());
        }
    }
}
