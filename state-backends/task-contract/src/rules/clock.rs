//! The clock of leases: it never goes back, and silence counts for a quarter of a lease at most. When nobody was heard
//! for longer, such as after an outage, a step of the clock or a host asleep, it is not each worker that was silent.

use interval_queue_contract::Micros;

use super::Work;
use crate::{MIN_LEASE, Rows, Step, Took, policy::mix};

/// What silence counts for if nobody lives: a quarter of a usual lease.
const GRACE: Micros = Micros::from_millis(7_500);

/// So many microseconds are left out at most: a second.
const LEFT_OUT: u64 = 1 << 20;

/// So often the clock is written, and seldom things are looked for.
pub(super) const SWEEP: Micros = Micros::from_millis(100);

impl<R: Rows> Work<'_, R> {
    /// Reads the clock of leases. A step writes it down now and then, and sweeps then.
    pub(super) fn tell_time(&mut self) -> Result<(), R::Error> {
        let passed = self.now - self.queue.seen;
        let counts = if passed <= Micros::new(MIN_LEASE.get() / 4) {
            passed
        } else {
            let shortest = self.rows.shortest_lease(self.queue.ticks)?;
            passed.min(shortest.map_or(GRACE, |lease| Micros::new(lease.get() / 4)))
        };
        self.ticks = self.queue.ticks + counts;
        Ok(())
    }

    pub(super) fn write_time(&mut self, step: &Step) {
        let (now, ticks) = (self.now, self.ticks);
        if now - self.queue.seen > ticks - self.queue.ticks {
            // After such a silence the store may be one that was rolled back, and the first to come need not know.
            self.begin_incarnation(step);
        }
        self.sweeps = self.queue.unswept;
        if self.is_new || now < self.queue.seen || now - self.queue.seen >= SWEEP {
            self.sweeps = true;
            self.hour_passed = Took::hour_of(now) != Took::hour_of(self.queue.seen);
            let queue = self.queue();
            (queue.seen, queue.ticks, queue.latest) = (now, ticks, queue.latest.max(now));
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
