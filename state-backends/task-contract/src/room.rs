//! How much weight a worker with a capacity has room for.

/// What is free of the capacity of a worker: the weights of all that it holds together are no more than that. But a
/// task that is heavier than the whole of it runs alone, else it would never run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Room {
    /// So much is free.
    pub weight: u32,
    /// Whether it holds nothing: then the first task may be heavier.
    pub empty: bool,
}

impl Room {
    /// Whether a task of this weight may be leased.
    pub fn fits(self, weight: u32) -> bool {
        self.empty || weight <= self.weight
    }

    /// What is left once it is.
    #[must_use]
    pub fn after(self, weight: u32) -> Self {
        Self { weight: self.weight.saturating_sub(weight), empty: false }
    }
}
