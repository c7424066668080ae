//! The clocks of this host, which all processes on it share.

use std::{thread, time::Duration};

use rustix::time::{ClockId, clock_gettime};

/// The monotonic clock, in nanoseconds.
pub(crate) fn monotonic() -> u64 {
    nanos(ClockId::Monotonic)
}

/// The wall clock, in nanoseconds since 1970: the clock of a file's state, and of a Redis on this host.
pub(crate) fn wall() -> u64 {
    nanos(ClockId::Realtime)
}

/// What this process has used of the processor, all its threads together, in nanoseconds.
pub(crate) fn cpu() -> u64 {
    nanos(ClockId::ProcessCPUTime)
}

/// Until `at` on the monotonic clock.
pub(crate) fn remaining(at: u64) -> Duration {
    Duration::from_nanos(at.saturating_sub(monotonic()))
}

/// Blocks until `at` on the monotonic clock.
pub(crate) fn sleep_until(at: u64) {
    thread::sleep(remaining(at));
}

/// What the monotonic and the wall clock show at one instant, taken from the quickest of several looks.
pub(crate) fn both() -> (u64, u64) {
    let looks = (0..20).map(|_| {
        let (before, wall, after) = (monotonic(), wall(), monotonic());
        (after - before, (before.midpoint(after), wall))
    });
    looks.min_by_key(|(took, _)| *took).map_or((0, 0), |(_, both)| both)
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // These clocks start in 1970 or later.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
