//! Jobs that hold a ticket and are not to start yet: they need a slot of other queues, too, and their gate is
//! closed until those are near.

use std::collections::HashSet;

use crate::{
    jobs::{JobId, Waiting},
    order::Ranked,
};

/// Whether a job may start when a slot comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// It may.
    Open,
    /// It waits for the slots of other queues.
    Closed,
}

/// The jobs of a line behind a closed gate.
#[derive(Clone, Debug)]
pub struct Gated<J> {
    /// Those with a ticket.
    pub jobs: Ranked<J>,
    /// Those that have none yet.
    pub arriving: HashSet<JobId>,
    /// How many are to come as soon as the slot comes that they ask another queue for.
    pub announced: usize,
}

impl<J> Default for Gated<J> {
    fn default() -> Self {
        Self { jobs: Ranked::default(), arriving: HashSet::new(), announced: 0 }
    }
}

impl<J> Gated<J> {
    /// Whether this one has no ticket yet.
    pub fn holds(&self, id: JobId) -> bool {
        !self.arriving.is_empty() && self.arriving.contains(&id)
    }

    pub(crate) fn move_to(mut self, others: &mut Ranked<J>) {
        while let Some((id, job)) = self.jobs.pop_first() {
            others.insert(id, job);
        }
    }

    /// Puts a job that has its ticket now where it belongs.
    pub(crate) fn place(&mut self, id: JobId, job: Waiting<J>, open: &mut Ranked<J>) {
        let place = if self.arriving.remove(&id) { &mut self.jobs } else { open };
        place.insert(id, job);
    }
}
