//! The events of a run with their instants, for readers who look for a cause.

use std::{fmt, time::Duration};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Since the beginning of the simulation, in true time.
    pub at: Duration,
    /// In words.
    pub what: String,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12.3} ms  {}", self.at.as_secs_f64() * 1000.0, self.what)
    }
}
