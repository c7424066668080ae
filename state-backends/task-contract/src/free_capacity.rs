//! The free capacity of a worker.

use serde::Serialize;

/// Free capacity of a worker. Its tasks never weigh more than its capacity, except a heavier task
/// that runs alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct FreeCapacity {
    /// The free weight.
    pub weight: u32,
    /// Whether the worker holds no task: the first may be heavier.
    pub empty: bool,
}

impl FreeCapacity {
    /// Whether a task of this weight may be leased.
    pub fn fits(self, weight: u32) -> bool {
        self.empty || weight <= self.weight
    }

    /// The capacity left after leasing this weight.
    #[must_use]
    pub fn after(self, weight: u32) -> Self {
        Self { weight: self.weight.saturating_sub(weight), empty: false }
    }
}
