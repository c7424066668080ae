//! The clock of leases: it never goes back, and while a worker holds tasks a silence of all counts for a quarter of the
//! shortest of their leases at most. After an outage, a step of the clock or a host asleep it is not each worker that was
//! silent. While no worker holds a task no lease can be lost by it: then a silence counts in full, up to half of the time
//! for which ids are remembered, so that ended tasks and dead workers are forgotten where workers come and go.

use interval_queue_contract::Micros;

use super::Work;
use crate::{KEEP_IDS, MIN_LEASE, Rows, Step, Took, policy::mix};

/// What is no silence while nobody holds a task: a quarter of a usual lease.
const GRACE: Micros = Micros::from_millis(7_500);

/// What one silence counts for at most. A step of the clock looks like one: an id that a repeated `add` may still name
/// must outlive it.
const LONGEST_SILENCE: Micros = Micros::new(KEEP_IDS.get() / 2);

/// So many microseconds are left out at most: a second.
const LEFT_OUT: u64 = 1 << 20;

/// So often the clock is written, and seldom things are looked for.
pub(super) const SWEEP: Micros = Micros::from_millis(100);

impl<R: Rows> Work<'_, R> {
    /// Reads the clock of leases. A step writes it down now and then, and sweeps then.
    pub(super) fn tell_time(&mut self) -> Result<(), R::Error> {
        let passed = self.now - self.queue.seen;
        let mut counts = passed;
        if passed > Micros::new(MIN_LEASE.get() / 4) {
            let shortest = self.rows.shortest_busy_lease(self.queue.lease_clock)?;
            let quarter = shortest.map_or(GRACE, |lease| Micros::new(lease.get() / 4));
            self.was_silent = passed > quarter;
            if self.was_silent {
                // A clock that goes forth and back passes each instant again: it counts once.
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
            // After such a silence the store may be one that was rolled back, and the first to come need not know.
            self.begin_incarnation(step);
        }
        self.sweeps = self.queue.maintenance_due;
        if self.is_new || now < self.queue.seen || now - self.queue.seen >= SWEEP {
            self.sweeps = true;
            self.hour_passed = Took::hour_of(now) != Took::hour_of(self.queue.seen);
            let queue = self.queue();
            (queue.seen, queue.lease_clock, queue.latest) = (now, lease_clock, queue.latest.max(now));
        }
    }

    /// From now on other tokens are given out than ever before.
    pub(super) fn begin_incarnation(&mut self, step: &Step) {
        let floor = self.queue.incarnation + Micros::new(1);
        let incarnation = self.later_than(floor, step);
        self.queue().incarnation = incarnation;
    }

    /// What the token of a lease begins with, after this one in the token before. Also a store that was rolled back and
    /// does not know it gives out other tokens than before: time has passed since.
    pub(super) fn incarnation_after(&self, before: Micros, step: &Step) -> Micros {
        self.later_than(self.queue.incarnation.max(before), step)
    }

    /// Now. If the clock was stepped back, it cannot tell what was given out since the copy that may be there now:
    /// some instants are left out then, as many as the step says, so that the same copy hardly ever leads to the same
    /// one twice.
    fn later_than(&self, floor: Micros, step: &Step) -> Micros {
        if self.now >= floor {
            return self.now;
        }
        let seed = self.now.get() ^ step.sequence.rotate_left(32) ^ step.worker.uuid().as_u128() as u64;
        floor + Micros::new(mix(seed) % LEFT_OUT)
    }

    /// The time of adding: never below the latest seen.
    pub(super) fn adding_time(&self) -> Micros {
        self.now.max(self.queue.latest)
    }
}
