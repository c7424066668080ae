//! A continuation without further trouble: messages arrive at once, nobody nudges, every worker acts when it is time,
//! and every run is done at once.

use std::{collections::HashMap, sync::Arc};

use interval_queue_memory::Tables;
use interval_queue_task_contract::{Change, EdgeState, State, TaskId};
use interval_queue_worker::POLL_INTERVAL;

use super::{
    member::{Member, Wire, instant},
    task_hash,
    task_model::{Action, End},
    task_promise::Promise,
    task_setup::{Setup, number},
    task_world::World,
};

/// How many things may happen in a row without an end before a worker counts as spinning.
const MOST: usize = 10_000;

/// How many ticks go by until every task has ended, or visibly waits for an operator; or the promise that breaks on
/// the way, such as that they do within the bound. What is known of other states is `known`.
pub(crate) fn settle(setup: &Setup, world: &World, known: &mut HashMap<u64, u64>) -> Result<u64, Promise> {
    let mut world = world.clone();
    for member in &mut world.members {
        // What was lost stays lost.
        member.strays.clear();
        let connection = &mut Arc::make_mut(&mut member.worker).connection;
        // It has just looked, for nothing, and has not heard when there is something.
        connection.sent = connection.sent.map(|_| instant(world.now));
        (connection.again, connection.more, connection.dry) = (false, false, true);
        (connection.next_at, connection.poll) = (None, POLL_INTERVAL.1);
    }
    let mut way = Vec::new();
    let mut lease_clock = loop {
        let state = task_hash::of_calm(&world);
        if let Some(&lease_clock) = known.get(&state) {
            break lease_clock;
        }
        if has_ended(&world) {
            break 0;
        }
        if let Some(&broken) = world.broken.first() {
            // With a flaw the exploration comes to where that happens.
            return if setup.flaw.is_some() { Ok(0) } else { Err(broken) };
        }
        if way.len() >= MOST {
            return Err(Promise::Liveness);
        }
        way.push((state, go_on(setup, &mut world)));
    };
    for (state, passed) in way.into_iter().rev() {
        lease_clock += u64::from(passed);
        known.insert(state, lease_clock);
    }
    if lease_clock <= setup.bound() { Ok(lease_clock) } else { Err(Promise::Liveness) }
}

/// One thing happens. Whether it is that time passes.
fn go_on(setup: &Setup, world: &mut World) -> bool {
    if world.stored.queue.as_ref().is_some_and(|queue| queue.paused) {
        world.change(setup, Change::Resume);
        return false;
    }
    let paused = world.stored.keys.values().find(|row| row.limit == Some(0)).map(|row| row.key.clone());
    if let Some(key) = paused {
        world.change(setup, Change::Key(key, None));
        return false;
    }
    for n in 0..world.members.len() {
        if act(setup, world, n) {
            return false;
        }
    }
    world.happen(setup, Action::Pass);
    true
}

/// A worker does the next thing that is due. Whether there was any.
fn act(setup: &Setup, world: &mut World, n: usize) -> bool {
    let member = &world.members[n];
    if !member.is_alive() {
        return false;
    }
    let held = &member.worker.held;
    let action = match &member.wire {
        Wire::Sent(_) => Action::Arrive(n),
        Wire::Answered(..) => Action::Receive(n),
        Wire::Idle if !held.running.is_empty() => {
            Action::End(n, held.running.keys().next().map_or(0, |id| number(*id)), End::Done)
        }
        Wire::Idle if member.can_start(world.now) => Action::Start(n),
        Wire::Idle => {
            let ran = held.running.len();
            world.act(setup, n, false);
            let expired = ran > world.members[n].worker.held.running.len();
            return !matches!(world.members[n].wire, Wire::Idle) || !world.members[n].is_alive() || expired;
        }
    };
    world.happen(setup, action);
    true
}

impl World {
    /// Whether nothing can happen any more to a task.
    pub(crate) fn is_over(&self, setup: &Setup) -> bool {
        let is_quiet = |member: &Member| {
            matches!(member.wire, Wire::Idle) && member.strays.is_empty() && member.worker.held.is_empty()
        };
        let mut once = setup.once.iter().enumerate();
        let may_come = once.any(|(n, once)| self.happened & 1 << n == 0 && !once.is_end());
        let has_ended = self.stored.tasks.values().all(|x| x.state.is_ended() && x.notified);
        has_ended && !may_come && self.members.iter().all(is_quiet)
    }
}

/// Whether every task has ended, or visibly waits.
fn has_ended(world: &World) -> bool {
    let tables = &world.stored;
    let is_notified = |state: State, notified| state.is_ended() && notified;
    tables.tasks.values().all(|x| is_notified(x.state, x.notified) || is_held(tables, x.id))
}

/// Whether a task waits for an upstream that has failed, until somebody retries that one, or for such a task.
pub(crate) fn is_held(tables: &Tables, id: TaskId) -> bool {
    let is_waiting = tables.tasks.get(&id).is_some_and(|x| x.state == State::Waiting);
    let mut edges = tables.edges.values().filter(|edge| edge.down == id);
    is_waiting && edges.any(|edge| edge.state == EdgeState::Held || is_held(tables, edge.up))
}
