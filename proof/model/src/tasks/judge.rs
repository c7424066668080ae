//! Holds every command against the promises: what was before, what was said, what is now.

use std::collections::{BTreeMap, BTreeSet};

use interval_queue_contract::{Micros, StateErrorKind};
use interval_queue_memory::Tables;
use interval_queue_task_contract::{
    Completed, Completion, Counted, Edge, EdgeState, Key, OnFailure, Outcome, State, Step, Stepped, Stop,
    Task, Until, WorkerId,
};
use interval_queue_worker::RunId;

use super::{
    task_promise::{Promise, Sight},
    task_setup::{TICK, number},
    task_world::World,
};

impl World {
    fn ensure(&mut self, promise: Promise, holds: bool) {
        if !holds {
            self.broken.insert(promise);
        }
    }
}

/// What a worker takes for its own, while its lease lasts by its own clock.
pub(crate) fn beliefs(world: &mut World) {
    let believing = world.members.iter().filter(|member| member.believes(world.now));
    let wrong = believing
        .flat_map(|member| member.holds().map(|run| (member.worker.identity.worker, run)))
        .any(|(worker, run)| !world.stored.tasks.get(&run.id).is_some_and(|x| is_of(x, worker, run)));
    world.ensure(Promise::Belief, !wrong);
}

fn is_of(x: &Task, worker: WorkerId, run: RunId) -> bool {
    x.state == State::Leased && x.worker == Some(worker) && x.token == run.token
}

/// A worker begins a run.
pub(crate) fn start(world: &mut World, x: &Task) {
    let is_new = world.begun.insert(RunId { id: x.id, token: x.token });
    world.ensure(Promise::Once, is_new);
    let runs = world.runs.entry(number(x.id)).or_default();
    if runs.0 != x.generation {
        *runs = (x.generation, 0);
    }
    runs.1 += 1;
    // Each run before has counted.
    let counted = runs.1 <= x.failures + 1;
    world.ensure(Promise::Failures, counted);
}

/// What must hold of all that is stored, and of how it changes.
pub(crate) fn rows(world: &mut World, before: &Tables) {
    let after = world.stored.clone();
    let mut counts: BTreeMap<_, i64> = BTreeMap::new();
    let mut names = BTreeSet::new();
    for x in after.tasks.values() {
        *counts.entry((x.kind.clone(), Counted::Now(x.state))).or_default() += 1;
        if let Some(unique) = x.unique.as_ref().filter(|_| x.holds_name) {
            world.ensure(Promise::Unique, names.insert(&unique.name));
        }
        if let Some(unique) = &x.unique {
            let lost =
                unique.until == Until::Ended && !x.state.is_ended() && x.generation == 0 && !x.holds_name;
            let kept = unique.until == Until::Leased && x.state == State::Leased && x.holds_name;
            world.ensure(Promise::Unique, !lost && !kept);
        }
        // One that has ended within a transaction until that is told.
        let may_hold = matches!(x.state, State::Ready | State::Leased)
            || x.ordered && x.state == State::Scheduled
            || x.state.is_ended() && !x.notified;
        let must_hold = x.key.is_some() && matches!(x.state, State::Ready | State::Leased);
        world.ensure(Promise::Limit, !x.holds_key || x.key.is_some() && may_hold);
        world.ensure(Promise::Limit, !must_hold || x.holds_key);
        if let Some(was) = before.tasks.get(&x.id) {
            let (was_at, is_at) = ((was.generation, was.token), (x.generation, x.token));
            world.ensure(Promise::Forward, was_at <= is_at);
            world.seen.extend((was.generation < x.generation).then_some(Sight::Retried));
            if was.state != x.state {
                seen(world, was, x);
            }
        }
    }
    for ((kind, counted), n) in &after.counts {
        if matches!(counted, Counted::Now(_)) {
            let stored = counts.remove(&(kind.clone(), *counted)).unwrap_or(0);
            world.ensure(Promise::Counts, stored == *n);
        }
    }
    world.ensure(Promise::Counts, counts.is_empty());
    for edge in after.edges.values() {
        world.ensure(Promise::Edges, edge_is_right(edge, before, &after));
        world.seen.extend((edge.state == EdgeState::Held).then_some(Sight::Held));
    }
    let aged = after.presences.iter().any(|(id, presence)| {
        before.presences.get(id).is_some_and(|known| known.sequence > presence.sequence)
    });
    world.ensure(Promise::Forward, !aged);
    limits(world, before, &after);
}

fn seen(world: &mut World, was: &Task, x: &Task) {
    let sight = match (was.state, x.state) {
        (_, State::Done) => Sight::Done,
        (_, State::Failed) => Sight::Failed,
        (_, State::Cancelled) => Sight::Cancelled,
        (State::Ready, State::Blocked) => Sight::Displaced,
        (State::Blocked, State::Ready | State::Leased) => Sight::HandOver,
        _ => return,
    };
    world.seen.push(sight);
}

/// A task has passed its first gate only if its upstreams have ended as its edges ask, and an edge that has told of an
/// end tells of no other one.
fn edge_is_right(edge: &Edge, before: &Tables, after: &Tables) -> bool {
    let (Some(up), Some(down)) = (after.tasks.get(&edge.up), after.tasks.get(&edge.down)) else {
        return false;
    };
    let is_past = matches!(down.state, State::Scheduled | State::Blocked | State::Ready | State::Leased);
    let may_pass = matches!(edge.state, EdgeState::Met | EdgeState::Failed);
    let failed = matches!(up.state, State::Failed | State::Cancelled);
    let is_notified = match edge.state {
        EdgeState::New | EdgeState::Open => true,
        EdgeState::Met => up.state == State::Done,
        EdgeState::Failed => failed && edge.on_failure == OnFailure::Run,
        EdgeState::Held => failed && edge.on_failure == OnFailure::Wait,
        EdgeState::Cut => failed && edge.on_failure == OnFailure::Cancel,
    };
    let was = before.edges.get(&(edge.down, edge.up));
    let same_life = before.tasks.get(&edge.down).is_some_and(|was| was.generation == down.generation);
    let was_told = was
        .filter(|was| same_life && matches!(was.state, EdgeState::Met | EdgeState::Failed | EdgeState::Cut));
    // The upstream was retried since: what was told of its earlier life stands.
    (is_notified || up.generation > edge.generation)
        && (!is_past || may_pass)
        && was_told.is_none_or(|was| was == edge)
}

/// No more live leases than may be; more only where the limit was lowered under them.
fn limits(world: &mut World, before: &Tables, after: &Tables) {
    let Some(queue) = &after.queue else { return };
    let running = |tables: &Tables| tables.tasks.values().filter(|x| x.state == State::Leased).count();
    if let Some(limit) = queue.settings.max_running {
        let is = running(after);
        world.ensure(Promise::Limit, is <= running(before).max(limit as usize));
        world.seen.extend((is >= limit as usize).then_some(Sight::Full));
    }
    for key in keys(after) {
        let of_key = |tables: &Tables| leased_of(tables, key).count();
        let (is, limit) = (of_key(after), limit_of(after, key));
        world.ensure(Promise::Limit, is <= of_key(before).max(limit));
        let ordered = leased_of(after, key).any(|x| x.ordered);
        world.ensure(Promise::Limit, is < 2 || !ordered);
        let waits = after.tasks.values().any(|x| x.key.as_ref() == Some(key) && x.state == State::Blocked);
        world.seen.extend((is >= limit && waits).then_some(Sight::Full));
    }
}

fn keys(tables: &Tables) -> BTreeSet<&Key> {
    tables.tasks.values().filter_map(|x| x.key.as_ref()).collect()
}

fn leased_of<'t>(tables: &'t Tables, key: &Key) -> impl Iterator<Item = &'t Task> {
    tables.tasks.values().filter(move |x| x.key.as_ref() == Some(key) && x.state == State::Leased)
}

fn limit_of(tables: &Tables, key: &Key) -> usize {
    let own = tables.keys.get(key).and_then(|row| row.limit);
    own.or(tables.queue.as_ref().map(|queue| queue.settings.key_limit)).unwrap_or(1) as usize
}

/// What no step has done: a live lease goes on, nothing is done, nothing fails.
pub(crate) fn others(world: &mut World, before: &Tables) {
    let after = world.stored.clone();
    for (was, x) in pairs(before, &after) {
        let goes_on = was.state != State::Leased || is_of_same_run(was, x);
        world.ensure(Promise::Lease, goes_on);
        world.ensure(
            Promise::Failures,
            was.failures == x.failures || x.generation > was.generation || was.unique != x.unique,
        );
        world.ensure(Promise::Fence, was.state == x.state || !matches!(x.state, State::Done | State::Leased));
    }
}

/// A transaction of the application has ended a run, or was refused.
pub(crate) fn within(
    world: &mut World,
    before: &Tables,
    worker: WorkerId,
    completion: &Completion,
    completed: Result<&Completed, StateErrorKind>,
) {
    let after = world.stored.clone();
    let run = RunId { id: completion.id, token: completion.token };
    let is_mine = before.tasks.get(&completion.id).filter(|x| is_of(x, worker, run));
    // One that was cancelled meanwhile is refused, so that the application rolls back.
    let in_force = is_mine.is_some_and(|x| x.stop != Some(Stop::Cancel));
    world.ensure(Promise::Fence, completed.is_ok() == in_force);
    world.seen.push(if in_force { Sight::Within } else { Sight::Refused });
    let is_alone = pairs(before, &after).all(|(was, x)| was == x || x.id == completion.id && in_force);
    world.ensure(Promise::Fence, is_alone);
    let has_ended = after.tasks.get(&completion.id).is_some_and(|x| x.state.is_ended());
    world.ensure(Promise::Fence, has_ended || !in_force);
}

fn pairs<'t>(before: &'t Tables, after: &'t Tables) -> impl Iterator<Item = (&'t Task, &'t Task)> {
    before.tasks.values().filter_map(|was| Some((was, after.tasks.get(&was.id)?)))
}

fn is_of_same_run(was: &Task, x: &Task) -> bool {
    x.state == State::Leased && (x.token, x.worker) == (was.token, was.worker)
}

/// A step was carried out.
pub(crate) fn step(world: &mut World, before: &Tables, step: &Step, stepped: &Stepped) {
    let after = world.stored.clone();
    world.seen.extend(stepped.resync.then_some(Sight::Restate));
    world.seen.extend((!stepped.lost.is_empty()).then_some(Sight::Lost));
    world.seen.extend((!stepped.stop.is_empty()).then_some(Sight::Stop));
    let known = before.presences.get(&step.worker).map_or(0, |presence| presence.sequence);
    world.ensure(Promise::Forward, known >= step.acknowledged);
    let lease_clock = after.queue.as_ref().map_or(Micros::ZERO, |queue| queue.lease_clock);
    for (was, x) in pairs(before, &after) {
        if was.state != State::Leased {
            let stands = x.state != State::Done || was.state == State::Done;
            world.ensure(Promise::Fence, stands);
            world.ensure(Promise::Failures, was.failures == x.failures);
        } else if is_of_same_run(was, x) {
            world.ensure(Promise::Failures, was.failures == x.failures);
        } else {
            lease_ended(world, before, lease_clock, step, was, x);
        }
    }
    for leased in &stepped.leased {
        let x = &leased.task;
        let was = before.tasks.get(&x.id);
        world.ensure(Promise::Forward, was.is_some_and(|was| was.token.attempt < x.token.attempt));
        let is_stored = after
            .tasks
            .get(&x.id)
            .is_some_and(|stored| is_of(stored, step.worker, RunId { id: x.id, token: x.token }));
        world.ensure(Promise::Lease, is_stored);
    }
    for Completion { id, token, .. } in &step.complete {
        let in_force =
            before.tasks.get(id).is_some_and(|x| is_of(x, step.worker, RunId { id: *id, token: *token }));
        let notified = stepped.lost.contains(id);
        world.ensure(Promise::Fence, in_force != notified);
    }
    housekeeping(world, &after, step, stepped);
}

/// A lease that was there is not there any more: whose word was that, and what counts?
fn lease_ended(world: &mut World, before: &Tables, lease_clock: Micros, step: &Step, was: &Task, x: &Task) {
    let is_own = was.worker == Some(step.worker);
    let holder = was.worker.and_then(|worker| before.presences.get(&worker));
    let was_alive = holder.is_some_and(|presence| presence.ends > lease_clock);
    let complete = step
        .complete
        .iter()
        .find(|completion| is_own && (completion.id, completion.token) == (was.id, was.token));
    // One that was to be cancelled is cancelled.
    let goes_on = was.stop != Some(Stop::Cancel);
    let counts = match complete.map(|completion| &completion.outcome) {
        Some(Outcome::Done(_)) => {
            world.ensure(Promise::Lease, x.state == State::Done || !goes_on);
            false
        }
        Some(_) if !goes_on => false,
        Some(Outcome::Error(_) | Outcome::Failed(_)) => true,
        Some(_) => {
            give_back(world, was);
            false
        }
        None if is_own && step.held.is_some() && was_alive => {
            world.seen.push(Sight::LostOnTheWay);
            false
        }
        None if is_own && step.held.is_some() => goes_on,
        // It may not have begun.
        None if was.prefetched => {
            world.ensure(Promise::Lease, !was_alive);
            world.seen.push(Sight::DiedInHand);
            give_back(world, was);
            false
        }
        None => {
            world.ensure(Promise::Lease, !was_alive);
            world.seen.push(Sight::Died);
            goes_on
        }
    };
    world.ensure(Promise::Failures, x.failures == was.failures + u32::from(counts));
    world.ensure(Promise::Stopped, goes_on || x.state == State::Cancelled);
}

/// A run that was given back does not count.
fn give_back(world: &mut World, was: &Task) {
    if world.begun.remove(&RunId { id: was.id, token: was.token })
        && let Some(runs) = world.runs.get_mut(&number(was.id)).filter(|runs| runs.0 == was.generation)
    {
        runs.1 -= 1;
    }
}

/// After a step that leaves nothing to do at once, nothing is left that could go on.
fn housekeeping(world: &mut World, after: &Tables, step: &Step, stepped: &Stepped) {
    let Some(queue) = &after.queue else { return };
    let needs_rebalancing = queue.maintenance_due
        || queue.rebalance_after.is_some()
        || after.keys.values().any(|row| row.needs_rebalancing);
    if stepped.resync || stepped.more || needs_rebalancing {
        return;
    }
    // A step that is given all that it wants may leave tasks that were added, and so may one whose worker comes back soon.
    let has_all = stepped.leased.len() == step.want as usize && (step.want > 0 || !step.complete.is_empty());
    let comes_back = stepped.next.is_some_and(|next| next <= TICK);
    let is_left = |x: &Task| x.state == State::Added && !has_all && !comes_back;
    let unnotified = after.tasks.values().any(|x| is_left(x) || x.state.is_ended() && !x.notified);
    let waits_for_nothing = after.tasks.values().any(|x| {
        let pending = || after.edges.values().any(|edge| edge.down == x.id && edge.state.is_pending());
        x.state == State::Waiting && !pending()
    });
    world.ensure(Promise::Told, !unnotified && !waits_for_nothing);
    let is_open = |x: &Task| after.kinds.get(&x.kind).is_some_and(|row| row.open);
    for key in keys(after) {
        let of_key = || after.tasks.values().filter(move |x| x.key.as_ref() == Some(key));
        let line = of_key().filter(|x| x.state == State::Blocked && !x.unserved && is_open(x));
        let Some(first) = line.min_by_key(|x| x.key_order()) else { continue };
        let held = of_key().filter(|x| x.holds_key).count();
        let limit = limit_of(after, key);
        let alone = limit > 1 && (first.ordered || of_key().any(|x| x.holds_key && x.ordered));
        world.ensure(Promise::HandOver, held >= if alone { 1 } else { limit });
        let last = of_key().filter(|x| x.holds_key && x.state == State::Ready).max_by_key(|x| x.key_order());
        let overtakes = last.is_some_and(|last| {
            last.key_order() > first.key_order() && !(last.ordered && last.leased.is_some()) && held == limit
        });
        world.ensure(Promise::Order, !overtakes);
    }
    let leased = after.tasks.values().filter(|x| x.state == State::Leased).count();
    let full = queue.settings.max_running.is_some_and(|limit| leased >= limit as usize);
    let ready =
        after.tasks.values().filter(|x| x.state == State::Ready && is_open(x)).filter(|x| {
            x.key.as_ref().is_none_or(|key| leased_of(after, key).count() < limit_of(after, key))
        });
    let next = ready.min_by_key(|x| x.order());
    let last = stepped.leased.iter().max_by_key(|leased| leased.task.order());
    if let (Some(next), Some(last)) = (next, last) {
        world.ensure(Promise::Order, next.order() > last.task.order());
    }
    let has_room = stepped.leased.len() < step.want as usize && !queue.paused && !full;
    world.ensure(Promise::HandOver, !has_room || next.is_none());
}
