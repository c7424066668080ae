//! What can happen in a state, for stateright to explore.

use std::sync::{Mutex, MutexGuard, PoisonError};

use stateright::{Model, Property};

use crate::{
    Asking, Loss, Promise, Setup, World, calm,
    report::{Explored, Found},
    setup::TICK,
    shard::{Shard, Wire},
    sight::Sight,
    story,
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
    found: Mutex<Found<Promise, Sight>>,
}

impl Queue {
    pub(crate) fn new(setup: Setup) -> Self {
        let calm = Setup { asking: Asking::WhenTold, ..setup.clone() };
        Self { setup, calm, found: Mutex::default() }
    }

    fn is_safe(&self, world: &World) -> bool {
        self.found().keeps(|_| world.broken.first().copied())
    }

    fn is_live(&self, world: &World) -> bool {
        self.found().keeps(|found| match calm::settle(&self.calm, world) {
            Some(ticks) => {
                found.slowest = found.slowest.max(ticks);
                None
            }
            None => Some(Promise::Liveness),
        })
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
            let possible = |loss: &&Loss| **loss == Loss::Gone || world.saved.is_some();
            actions.extend(self.setup.losses.iter().filter(possible).copied().map(Action::Lose));
            if world.saved.is_none() && self.setup.losses.iter().any(|loss| *loss != Loss::Gone) {
                actions.push(Action::Save);
            }
        }
        actions.push(Action::Pass);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.happen(&self.setup, action);
        self.found().sights.extend(next.seen.drain(..));
        Some(next.normal(&self.setup))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("safe", Self::is_safe), Property::always("live", Self::is_live)]
    }
}

impl Explored for Queue {
    type Promise = Promise;
    type Sight = Sight;
    const KIND: &'static str = "model";

    fn found(&self) -> MutexGuard<'_, Found<Promise, Sight>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn text(promise: Promise) -> &'static str {
        promise.text()
    }

    fn calm(&self, ticks: u64) -> String {
        let slowest = (TICK * ticks).to_duration().div_duration_f64(self.setup.interval().to_duration());
        format!("all jobs of the living start within {slowest} intervals")
    }

    fn story(&self, actions: &[Action]) -> Vec<String> {
        story::tell(self, actions)
    }
}
