//! How quick the last commands were: whether the next one may run on the thread that gives it.

use std::time::{Duration, Instant};

/// No command that usually takes longer may keep the thread that gives it. A hop to another one and back
/// costs some 20 µs.
const QUICK: Duration = Duration::from_micros(100);
/// A command takes part in the mean as one of so many.
const MEMORY: u32 = 8;

/// Learns from every command how long one takes.
#[derive(Debug)]
pub(crate) struct Swiftness {
    /// The mean, in which the last commands count most: a slow one is forgiven after as many quick ones as it
    /// was slow.
    mean: Duration,
}

impl Default for Swiftness {
    /// Nothing is known: the first commands have to prove it.
    fn default() -> Self {
        Self { mean: QUICK * 2 }
    }
}

impl Swiftness {
    /// Whether the next command is probably quick.
    pub(crate) fn is_proven(&self) -> bool {
        self.mean < QUICK
    }

    /// Runs a command, without the wait for the lock, and learns from it.
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
        self.mean = (self.mean * (MEMORY - 1) + took) / MEMORY;
    }
}

#[cfg(test)]
#[path = "../../tests/unit/latency_unit.rs"]
mod tests;
