//! The hash that tells states apart. The line is taken apart without `..`, so that a new field cannot be
//! overlooked.

use std::hash::{DefaultHasher, Hash, Hasher};

use interval_queue_line::{Arriving, Backlog, Line};

use crate::{World, shard::Shard};

/// What hashes tell apart.
impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        let hash = |world: &Self| {
            let mut state = DefaultHasher::new();
            world.hash(&mut state);
            state.finish()
        };
        hash(self) == hash(other)
    }
}

impl Hash for Shard {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { alive, added, line, lapsed, wire, stray, resend, last, stale } = self;
        (alive, added, lapsed, wire, stray, resend, last, stale).hash(state);
        // The clock is exact, nothing runs alone, and the rest is fixed.
        let Line { identity: _, clock: _, connection, backlog, held, running, alone: _ } = line;
        (connection, held, running.len()).hash(state);
        // Jobs differ in nothing but their weights and their order; none has terms or a gate.
        let Backlog {
            last_id: _,
            arriving,
            taking,
            is_ranked: _,
            hurry: _,
            waiting,
            gated: _,
            gated_arriving: _,
            announced: _,
            unestimated: _,
            most_ahead: _,
            index: _,
        } = backlog;
        let weight = |arriving: &Arriving<()>| arriving.job.weight;
        arriving.iter().map(weight).collect::<Vec<_>>().hash(state);
        let taking = taking.as_ref();
        let taking =
            taking.map(|taking| (taking.request, taking.batch.iter().map(weight).collect::<Vec<_>>()));
        taking.hash(state);
        waiting.values().map(|job| job.weight).collect::<Vec<_>>().hash(state);
    }
}
