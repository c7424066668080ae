//! What can happen in a state, for stateright to explore.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use stateright::{Model, Property};

use super::{
    member::{Life, Member, Wire},
    task_promise::{Promise, Sight},
    task_quiescence,
    task_setup::{LEASE, Lateness, Requests, Setup, number},
    task_trace,
    task_world::World,
};
use crate::report::{Explored, Found};

/// One thing that happens. Workers and tasks are told by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A quarter of a lease goes by.
    Pass,
    /// A worker looks what is to do, and sends a step if one is due.
    Act(usize),
    /// A worker that holds nothing finds that its lease has ended by its own clock.
    Doubt(usize),
    /// The step arrives at the store and is carried out.
    Arrive(usize),
    /// The answer arrives at the worker.
    Receive(usize),
    /// An answer arrives at a worker that did not wait for it any more, and is used: only a flawed one does that.
    ReceiveLate(usize),
    /// The worker waits for the answer no more.
    TimeOut(usize),
    /// The request is on its way twice.
    Double(usize),
    /// A request that nobody waits for any more arrives at the store.
    Stray(usize, usize),
    /// A worker begins the run of the most urgent task that it has in hand.
    Start(usize),
    /// The run of a task ends.
    End(usize, u32, End),
    /// A worker dies.
    Crash(usize),
    /// A worker is told to stop.
    Stop(usize),
    /// Something that happens once.
    Once(usize),
}

/// How a run ends at its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Well.
    Done,
    /// As it was asked to.
    Stopped,
    /// As it may once.
    Once(usize),
}

/// The model of a queue in a setup.
#[derive(Debug)]
pub struct Queue {
    pub(crate) setup: Setup,
    found: Mutex<Found<Promise, Sight>>,
    /// How many ticks states are from the end of all, once there is no more trouble.
    pub(crate) calm: Mutex<HashMap<u64, u64>>,
}

impl Queue {
    pub(crate) fn new(setup: Setup) -> Self {
        Self { setup, found: Mutex::default(), calm: Mutex::default() }
    }

    fn is_safe(&self, world: &World) -> bool {
        self.found().keeps(|_| world.broken.first().copied())
    }

    fn is_live(&self, world: &World) -> bool {
        let mut known = self.calm.lock().unwrap_or_else(PoisonError::into_inner);
        self.found().keeps(|found| match task_quiescence::settle(&self.setup, world, &mut known) {
            Ok(lease_clock) => {
                found.slowest = found.slowest.max(lease_clock);
                None
            }
            Err(broken) => Some(broken),
        })
    }

    fn actions_of(&self, world: &World, n: usize, actions: &mut Vec<Action>) {
        let (setup, left) = (&self.setup, &world.left);
        let member = &world.members[n];
        let Member { generation, worker, wire, strays, stale } = member;
        actions.extend((0..strays.len()).map(|which| Action::Stray(n, which)));
        // Workers differ only by name: they come in the order of their names.
        let its_turn = n == 0 || world.members[n - 1].generation != Life::New;
        if *generation == Life::Gone || *generation == Life::New && !its_turn {
            return;
        }
        if stale.is_some() {
            actions.push(Action::ReceiveLate(n));
        }
        actions.push(Action::Act(n));
        if *generation == Life::New {
            return;
        }
        match wire {
            Wire::Idle if worker.held.is_free() && !worker.connection.unsure => {
                actions.push(Action::Doubt(n))
            }
            Wire::Idle => {}
            Wire::Sent(_) => {
                actions.push(Action::Arrive(n));
                if left.doubles > 0 && setup.requests == Requests::Slow {
                    actions.push(Action::Double(n));
                }
            }
            Wire::Answered(..) => actions.push(Action::Receive(n)),
        }
        if !matches!(wire, Wire::Idle) && left.timeouts > 0 {
            actions.push(Action::TimeOut(n));
        }
        if member.can_start(world.now) {
            actions.push(Action::Start(n));
        }
        for (id, running) in &worker.held.running {
            let task = number(*id);
            actions.push(Action::End(n, task, End::Done));
            if running.asked {
                actions.push(Action::End(n, task, End::Stopped));
            }
            let ends = setup.once.iter().enumerate().filter(|(_, once)| once.is_end());
            let left = ends.map(|(which, _)| which).filter(|which| world.happened & 1 << which == 0);
            actions.extend(left.map(|which| Action::End(n, task, End::Once(which))));
        }
        if left.crashes > 0 {
            actions.push(Action::Crash(n));
        }
        if left.stops > 0 && worker.stopping.is_none() {
            actions.push(Action::Stop(n));
        }
    }
}

impl World {
    /// Whether a worker has nothing left to do within this tick but to wait for its runs.
    fn is_on_time(&self, member: &Member) -> bool {
        if member.generation != Life::Alive {
            return true;
        }
        let lease_clock = self.stored.queue.as_ref().map_or_else(Default::default, |queue| queue.lease_clock);
        let presence = self.stored.presences.get(&member.worker.identity.worker);
        let has_stepped = presence.is_some_and(|presence| presence.ends >= lease_clock + LEASE);
        matches!(member.wire, Wire::Idle) && !member.worker.connection.unsure && has_stepped
    }
}

impl Model for Queue {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(&self.setup)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        // Nothing that happens after a promise is broken is of interest, nor when nothing is left to happen.
        if !world.broken.is_empty() || world.is_over(&self.setup) {
            return;
        }
        for n in 0..world.members.len() {
            self.actions_of(world, n, actions);
        }
        for (which, once) in self.setup.once.iter().enumerate() {
            if world.happened & 1 << which == 0 && !once.is_end() {
                actions.push(Action::Once(which));
            }
        }
        if self.setup.lateness == Lateness::Any || world.members.iter().all(|member| world.is_on_time(member))
        {
            actions.push(Action::Pass);
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.happen(&self.setup, action);
        self.found().sights.extend(next.seen.drain(..));
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("safe", Self::is_safe), Property::always("live", Self::is_live)]
    }
}

impl Explored for Queue {
    type Promise = Promise;
    type Sight = Sight;
    const KIND: &'static str = "task-model";

    fn found(&self) -> MutexGuard<'_, Found<Promise, Sight>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn text(promise: Promise) -> &'static str {
        promise.text()
    }

    fn calm(&self, lease_clock: u64) -> String {
        format!("all tasks end within {} leases", lease_clock as f64 / 4.0)
    }

    fn story(&self, actions: &[Action]) -> Vec<String> {
        task_trace::tell(self, actions)
    }
}
