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
mod tests {
    use super::*;

    /// How many commands that take so long it needs to be trusted.
    fn commands_until_proven(swiftness: &mut Swiftness, took: Duration) -> Option<usize> {
        (0..100).find(|_| {
            swiftness.is_proven() || {
                swiftness.note(took);
                false
            }
        })
    }

    #[test]
    fn trust_is_earned_by_quick_commands_and_lost_by_slow_ones() {
        let mut swiftness = Swiftness::default();
        assert_eq!(commands_until_proven(&mut swiftness, QUICK), None);
        let mut swiftness = Swiftness::default();
        let at_first = commands_until_proven(&mut swiftness, QUICK / 10).unwrap();
        assert!((2..10).contains(&at_first), "{at_first}");
        (0..10).for_each(|_| swiftness.note(QUICK / 10));

        swiftness.note(QUICK * 5);
        assert!(swiftness.is_proven(), "a busy machine makes one slow now and then");
        swiftness.note(QUICK * 100);
        assert!(!swiftness.is_proven());
        let after = commands_until_proven(&mut swiftness, QUICK / 10).unwrap();
        assert!((at_first..50).contains(&after), "{after}");

        (0..20).for_each(|_| swiftness.note(QUICK * 2));
        assert!(!swiftness.is_proven());
    }
}
