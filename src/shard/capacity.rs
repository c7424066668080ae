//! The capacity of a bounded line.

use std::sync::Arc;

use tokio::sync::Semaphore;

#[derive(Debug)]
pub(crate) struct Capacity {
    pub(super) most: usize,
    pub(crate) free: Arc<Semaphore>,
}

impl Capacity {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, free: Arc::new(Semaphore::new(most)) }
    }
}
