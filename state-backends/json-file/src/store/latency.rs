//! Whether the next command may run on the calling thread.

use std::time::{Duration, Instant};

/// On the calling thread, on average. A hop to another thread and back: 20 µs.
const QUICK_COMMAND: Duration = Duration::from_micros(100);
/// The latest command's part in the mean is `1 / MEAN_WEIGHT`.
const MEAN_WEIGHT: u32 = 8;

#[derive(Debug)]
pub(crate) struct LatencyEstimate {
    mean: Duration,
}

impl Default for LatencyEstimate {
    /// Unproven: the first commands run on a blocking thread.
    fn default() -> Self {
        Self { mean: QUICK_COMMAND * 2 }
    }
}

impl LatencyEstimate {
    pub(crate) fn is_quick(&self) -> bool {
        self.mean < QUICK_COMMAND
    }

    /// The wait for the lock does not count.
    #[allow(
        clippy::disallowed_methods,
        reason = "measures how long a command takes, never an instant of the state"
    )]
    pub(crate) fn watch<T>(&mut self, command: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = command();
        self.note(begun.elapsed());
        result
    }

    fn note(&mut self, took: Duration) {
        self.mean = (self.mean * (MEAN_WEIGHT - 1) + took) / MEAN_WEIGHT;
    }
}

#[cfg(test)]
#[path = "../../tests/unit/latency_unit.rs"]
mod tests;
