//! The lease clock never goes back. While a worker holds tasks, a silence of all workers counts for
//! at most a quarter of the shortest of their leases: no single worker caused the outage, clock
//! step or suspended host.
//!
//! While no worker holds a task, a silence counts in full, up to half the retention of ids, so that
//! ended tasks and dead workers are forgotten.

use interval_queue_contract::Micros;

use super::Work;
use crate::{KEEP_IDS, MIN_LEASE, Rows, Step, Took, policy::mix};

/// While no worker holds a task: a quarter of the default lease.
const MAX_PAUSE: Micros = Micros::from_millis(7_500);

/// A clock step looks like a silence, and must not expire an id that a repeated `add` may name.
const LONGEST_SILENCE: Micros = Micros::new(KEEP_IDS.get() / 2);

/// In microseconds: a second.
const MAX_SKIPPED: u64 = 1 << 20;

/// Interval at which the lease clock is stored and full maintenance is done.
pub const MAINTENANCE_INTERVAL: Micros = Micros::from_millis(100);

impl<R: Rows> Work<'_, R> {
    pub(super) fn read_lease_clock(&mut self) -> Result<(), R::Error> {
        let passed = self.now - self.queue.seen;
        let mut counts = passed;
        if passed > Micros::new(MIN_LEASE.get() / 4) {
            let shortest = self.rows.shortest_busy_lease(self.queue.lease_clock)?;
            let quarter = shortest.map_or(MAX_PAUSE, |lease| Micros::new(lease.get() / 4));
            self.was_silent = passed > quarter;
            if self.was_silent {
                // An instant that the clock passes again after a step back counts once.
                let unseen = if shortest.is_none() { self.now - self.queue.latest } else { Micros::ZERO };
                counts = quarter.max(unseen.min(LONGEST_SILENCE));
            }
        }
        self.lease_clock = self.queue.lease_clock + counts;
        Ok(())
    }

    pub(super) fn write_time(&mut self, step: &Step) {
        let (now, lease_clock) = (self.now, self.lease_clock);
        if self.was_silent {
            // The store may have been rolled back unnoticed during the silence.
            self.begin_incarnation(step);
        }
        self.maintains = self.queue.maintenance_due;
        if self.is_new || now < self.queue.seen || now - self.queue.seen >= MAINTENANCE_INTERVAL {
            self.maintains = true;
            self.hour_passed = Took::hour_of(now) != Took::hour_of(self.queue.seen);
            let queue = self.queue();
            (queue.seen, queue.lease_clock, queue.latest) = (now, lease_clock, queue.latest.max(now));
        }
    }

    pub(super) fn begin_incarnation(&mut self, step: &Step) {
        let floor = self.queue.incarnation + Micros::new(1);
        let incarnation = self.later_than(floor, step);
        self.queue().incarnation = incarnation;
    }

    /// Even a store that was rolled back unnoticed issues no token twice, because time has passed.
    pub(super) fn incarnation_after(&self, before: Micros, step: &Step) -> Micros {
        self.later_than(self.queue.incarnation.max(before), step)
    }

    /// Now, unless the clock was stepped back. Then tokens issued since a restored copy was made
    /// are unknown: skips as many instants as the step determines, so one copy hardly ever leads to
    /// the same incarnation twice.
    fn later_than(&self, floor: Micros, step: &Step) -> Micros {
        if self.now >= floor {
            return self.now;
        }
        let seed = self.now.get() ^ step.sequence.rotate_left(32) ^ step.worker.uuid().as_u128() as u64;
        floor + Micros::new(mix(seed) % MAX_SKIPPED)
    }

    pub(super) fn adding_time(&self) -> Micros {
        self.now.max(self.queue.latest)
    }
}
