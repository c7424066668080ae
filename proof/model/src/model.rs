//! What can happen in a state, for stateright to explore.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

use stateright::{Model, Property};

use crate::{
    Asking, Loss, Promise, Setup, World, calm,
    shard::{Shard, Wire},
    sight::Sight,
};

/// One thing that happens. Shards are told by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Half an interval goes by.
    Pass,
    /// A shard adds its next job.
    Add(usize),
    /// A shard sends a step.
    Send(usize),
    /// The step arrives at the state and is carried out.
    Arrive(usize),
    /// The answer arrives at the shard.
    Receive(usize),
    /// An answer arrives at a shard that did not wait for it any more, and is used: only a flawed one does
    /// that.
    ReceiveLate(usize),
    /// The shard waits for the answer no more.
    TimeOut(usize),
    /// A request that nobody waits for any more arrives at the state.
    Stray(usize),
    /// A job starts.
    Start(usize),
    /// A job ends.
    Finish(usize),
    /// A shard withdraws its last waiting job.
    Cancel(usize),
    /// A shard dies.
    Crash(usize),
    /// Somebody pauses the queue.
    Pause,
    /// Somebody resumes it.
    Resume,
    /// Somebody holds it for two intervals.
    Hold,
    /// Somebody copies the record.
    Save,
    /// The record is lost.
    Lose(Loss),
}

/// The model of a queue in a setup.
#[derive(Debug)]
pub struct Queue {
    pub(crate) setup: Setup,
    /// The same, for those who act when told.
    calm: Setup,
    /// Which sights were seen, a bit each.
    seen: AtomicU32,
    /// Whether a promise was broken.
    refuted: AtomicBool,
    /// The longest that the living had to wait once all trouble was over, in ticks.
    pub(crate) slowest: AtomicU64,
}

impl Queue {
    pub(crate) fn new(setup: Setup) -> Self {
        let calm = Setup { asking: Asking::WhenTold, ..setup.clone() };
        Self {
            setup,
            calm,
            seen: AtomicU32::new(0),
            refuted: AtomicBool::new(false),
            slowest: AtomicU64::new(0),
        }
    }

    /// Whether the state keeps the promise. Only the first state that does not is told: stateright would put
    /// each later one in its place, and the first is at the end of a shortest way.
    fn keeps(&self, promise: Promise, world: &World) -> bool {
        if self.refuted.load(Ordering::Relaxed) {
            return true;
        }
        let keeps = match promise {
            Promise::Liveness => {
                let ticks = calm::settle(&self.calm, world);
                self.slowest.fetch_max(ticks.unwrap_or(0), Ordering::Relaxed);
                ticks.is_some()
            }
            _ => !world.broken.contains(&promise),
        };
        self.refuted.store(!keeps, Ordering::Relaxed);
        keeps
    }

    /// What was seen on the way through all states.
    pub(crate) fn sights(&self) -> BTreeSet<Sight> {
        let seen = self.seen.load(Ordering::Relaxed);
        Sight::ALL.into_iter().filter(|&sight| seen & (1 << sight as u32) != 0).collect()
    }

    fn actions_of(&self, world: &World, n: usize, actions: &mut Vec<Action>) {
        let (setup, left) = (&self.setup, &world.left);
        let shard = &world.shards[n];
        let Shard { alive, added, wire, stray, stale, .. } = shard;
        if stray.is_some() {
            actions.push(Action::Stray(n));
        }
        if !alive {
            return;
        }
        // Where shards differ only by name, they add their first jobs in the order of their names.
        let its_turn = n == 0 || world.shards[n - 1].added > 0 || !world.shards[n - 1].alive;
        if *added < setup.jobs[n].len() && (*added > 0 || its_turn || !setup.is_symmetric()) {
            actions.push(Action::Add(n));
        }
        match wire {
            Wire::Idle if shard.has_step(setup, n) => actions.push(Action::Send(n)),
            Wire::Idle => {}
            Wire::Sent(_) => actions.push(Action::Arrive(n)),
            Wire::Answered(_) => actions.push(Action::Receive(n)),
        }
        if stale.is_some() {
            actions.push(Action::ReceiveLate(n));
        }
        if *wire != Wire::Idle && left.timeouts > 0 {
            actions.push(Action::TimeOut(n));
        }
        if shard.can_start() {
            actions.push(Action::Start(n));
        }
        if !shard.line.running.is_empty() {
            actions.push(Action::Finish(n));
        }
        if left.cancels > 0 && shard.last_waiting().is_some() {
            actions.push(Action::Cancel(n));
        }
        // One that has said nothing yet leaves nothing behind.
        if left.crashes > 0 && *added > 0 {
            actions.push(Action::Crash(n));
        }
    }
}

impl Model for Queue {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(&self.setup).normal(&self.setup)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        // Nothing that happens after a promise is broken is of interest.
        if !world.broken.is_empty() {
            return;
        }
        for n in 0..world.shards.len() {
            self.actions_of(world, n, actions);
        }
        let left = &world.left;
        if let Some(record) = &world.stored {
            if record.paused {
                actions.push(Action::Resume);
            } else if left.pauses > 0 {
                actions.push(Action::Pause);
            }
            if left.holds > 0 {
                actions.push(Action::Hold);
            }
        }
        if left.losses > 0 {
            for &loss in &self.setup.losses {
                match loss {
                    Loss::Gone => actions.push(Action::Lose(loss)),
                    Loss::Rewound | Loss::FailedOver if world.saved.is_some() => {
                        actions.push(Action::Lose(loss))
                    }
                    Loss::Rewound | Loss::FailedOver => {}
                }
            }
            if world.saved.is_none() && self.setup.losses.iter().any(|loss| *loss != Loss::Gone) {
                actions.push(Action::Save);
            }
        }
        actions.push(Action::Pass);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.happen(&self.setup, action);
        let seen = next.seen.drain(..).fold(0, |seen, sight| seen | 1 << sight as u32);
        self.seen.fetch_or(seen, Ordering::Relaxed);
        Some(next.normal(&self.setup))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        Promise::ALL.into_iter().map(property).collect()
    }
}

fn property(promise: Promise) -> Property<Queue> {
    // Plain functions cannot carry the promise along.
    let condition: fn(&Queue, &World) -> bool = match promise {
        Promise::Spacing => |queue, world| queue.keeps(Promise::Spacing, world),
        Promise::Granted => |queue, world| queue.keeps(Promise::Granted, world),
        Promise::Once => |queue, world| queue.keeps(Promise::Once, world),
        Promise::Obedience => |queue, world| queue.keeps(Promise::Obedience, world),
        Promise::Limit => |queue, world| queue.keeps(Promise::Limit, world),
        Promise::Forward => |queue, world| queue.keeps(Promise::Forward, world),
        Promise::Recovery => |queue, world| queue.keeps(Promise::Recovery, world),
        Promise::Soundness => |queue, world| queue.keeps(Promise::Soundness, world),
        Promise::Liveness => |queue, world| queue.keeps(Promise::Liveness, world),
    };
    Property::always(promise.text(), condition)
}
