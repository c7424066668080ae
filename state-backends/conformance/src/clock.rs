//! A clock that a test moves by hand.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use interval_queue_contract::{Micros, Reading};

/// A store's clock that stands still until a test moves it. A clone is a handle to the same clock.
///
/// Starts at one hour, so that it can step back. For the memory store:
/// `MemoryState::with_clock(move || clock.reading())`.
#[derive(Clone, Debug)]
pub struct ManualClock {
    shows: Arc<Mutex<Reading>>,
}

impl ManualClock {
    /// A clock that shows one hour. The incarnation of the store is empty.
    pub fn new() -> Self {
        let hour = Micros::from_duration(Duration::from_secs(3600));
        Self { shows: Arc::new(Mutex::new(Reading::of_clock(hour))) }
    }

    /// The current instant.
    pub fn now(&self) -> Micros {
        self.shows().now
    }

    /// The reading of a backend: instant and incarnation.
    pub fn reading(&self) -> Reading {
        self.shows().clone()
    }

    /// Moves forward. Fractions of a microsecond are rounded up.
    pub fn advance(&self, by: Duration) {
        let mut shows = self.shows();
        shows.now = shows.now + Micros::from_duration(by);
    }

    /// Steps back, at most to zero.
    pub fn step_back(&self, by: Duration) {
        let mut shows = self.shows();
        shows.now = shows.now - Micros::from_duration(by);
    }

    /// Sets the server process that holds the records. A new name means a restart.
    pub fn set_incarnation(&self, incarnation: impl Into<String>) {
        self.shows().incarnation = incarnation.into();
    }

    fn shows(&self) -> MutexGuard<'_, Reading> {
        self.shows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_show_the_same_and_a_step_back_ends_at_zero() {
        let clock = ManualClock::new();
        let other = clock.clone();
        let began = clock.now();
        other.advance(Duration::from_millis(3));
        assert_eq!(clock.now(), began + Micros::from_millis(3));
        other.step_back(Duration::from_millis(1));
        other.set_incarnation("second");
        assert_eq!(clock.reading().now, began + Micros::from_millis(2));
        assert_eq!(clock.reading().incarnation, "second");
        clock.step_back(Duration::MAX);
        assert_eq!(other.now(), Micros::ZERO);
    }
}
