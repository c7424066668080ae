//! The hash that tells states apart: what no rule and no worker can tell apart is hashed as the same, so that there
//! are finitely many states. Every line that leaves something out says why nobody can tell. Rows and machines are taken
//! apart without `..`, so that a new field cannot be overlooked.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    Completion, Edge, KeyRow, KindRow, Outcome, Presence, Queue, State, Step, Stepped, Task, TaskId, Token,
    WorkerId,
};
use interval_queue_worker::{Connection, Held, Identity, Running, Stopping, UnderWay, Worker};

use super::{
    member::{Member, Wire, since, until},
    ranks::{Numbers, Tokens},
    task_setup::{LEASE, TICK, number},
    task_world::World,
};

/// The longest that silence counts for when nobody lives, and a bit.
const LONG: Micros = Micros::from_millis(8_000);

/// What hashes tell apart.
impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        of(self, true) == of(other, true)
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        of(self, true).hash(state);
    }
}

/// The hash of a state without further trouble: without what may still go wrong, and with when workers look again.
pub(crate) fn of_calm(world: &World) -> u64 {
    of(world, false)
}

fn of(world: &World, is_all: bool) -> u64 {
    let canon = Canon::new(world, !is_all);
    let mut hasher = DefaultHasher::new();
    let state = &mut hasher;
    // Workers differ only by name, which decides nothing but ties.
    let mut members: Vec<(u64, WorkerId)> = world.members.iter().map(|member| canon.member(member)).collect();
    members.sort();
    members.iter().for_each(|(hash, _)| hash.hash(state));
    canon.rows(&members, state);
    if is_all {
        let World { now: _, stored: _, members: _, begun, runs, left, happened, broken, seen: _ } = world;
        (left, happened, broken).hash(state);
        begun.iter().for_each(|run| canon.run(run.id, run.token).hash(state));
        runs.hash(state);
    }
    hasher.finish()
}

struct Canon<'w> {
    world: &'w World,
    tokens: Tokens,
    /// Whether workers look when it is time; else whenever they like.
    is_calm: bool,
}

impl<'w> Canon<'w> {
    fn new(world: &'w World, is_calm: bool) -> Self {
        let tokens = Tokens::of(world);
        Self { world, tokens, is_calm }
    }

    fn run(&self, id: TaskId, token: Token) -> (u32, usize) {
        self.tokens.rank(id, token)
    }

    /// How long it is until then, in whole ticks: nobody looks in between.
    fn ticks_until(&self, at: Micros) -> u64 {
        (at - self.world.now).get().div_ceil(TICK.get())
    }

    fn member(&self, member: &Member) -> (u64, WorkerId) {
        let mut hasher = DefaultHasher::new();
        let state = &mut hasher;
        let Member { generation, worker, wire, strays, stale } = member;
        // The rate is looked at before each start, so nothing is left of it.
        let Worker { identity, connection, held, pace: _, prefetch: _, stopping } = &**worker;
        let Identity { worker: id, label: _, kinds, lease, permits, prefetch, capacity } = identity;
        (generation, kinds, lease, permits, prefetch, capacity).hash(state);
        let presence = self.world.stored.presences.get(id);
        let numbers = Numbers::of(member, presence);
        self.connection(connection, &numbers, state);
        self.held(held, state);
        worker.waited_at().map(|at| self.until(at)).hash(state);
        let stopping = stopping.as_ref();
        let stopping = stopping.map(|Stopping { by, runs_asked, is_reported }| {
            (self.until(*by), self.since(*by), runs_asked, is_reported)
        });
        stopping.hash(state);
        match wire {
            Wire::Idle => 0.hash(state),
            Wire::Sent(step) => {
                1.hash(state);
                self.step(step, &numbers, state);
            }
            Wire::Answered(sequence, answer) => {
                (2, numbers.rank(*sequence)).hash(state);
                match &**answer {
                    Ok(stepped) => self.stepped(stepped, state),
                    Err(kind) => std::mem::discriminant(kind).hash(state),
                }
            }
        }
        if let Some((UnderWay { sent, .. }, answer)) = stale {
            self.since(*sent).hash(state);
            answer.as_ref().as_ref().map(|stepped| self.stepped(stepped, state)).is_ok().hash(state);
        }
        strays.len().hash(state);
        strays.iter().for_each(|step| self.step(step, &numbers, state));
        presence.map(|presence| self.presence(presence, &numbers)).hash(state);
        for x in self.world.stored.tasks.values() {
            if x.state == State::Leased && x.worker == Some(*id) {
                number(x.id).hash(state);
            }
        }
        (hasher.finish(), *id)
    }

    fn until(&self, at: std::time::Instant) -> Duration {
        until(at, self.world.now)
    }

    /// What is longer ago than a lease is long ago.
    fn since(&self, at: std::time::Instant) -> Duration {
        since(at, self.world.now).min(LEASE.to_duration())
    }

    fn connection<H: Hasher>(&self, connection: &Connection, numbers: &Numbers, state: &mut H) {
        let Connection {
            sequence,
            acknowledged,
            under_way,
            unsure,
            listed: _,
            sent,
            lease_ends,
            again,
            more,
            notified,
            in_vain,
            dry,
            poll,
            next_at,
            exchange,
            failing,
        } = connection;
        debug_assert!(failing.is_none() && *exchange == (0, 0), "the next try may come at once");
        // Rules compare what was acknowledged only with what they know of, which is no less: `judge.rs` looks at it.
        (numbers.rank(*sequence), *acknowledged == 0, unsure).hash(state);
        if let Some(UnderWay {
            sequence,
            sent,
            want,
            ahead,
            completed,
            exchange: _,
            notified: _,
            last,
            restricted: _,
        }) = under_way
        {
            (numbers.rank(*sequence), self.since(*sent), want, ahead, last).hash(state);
            completed.iter().for_each(|run| self.run(run.id, run.token).hash(state));
        }
        lease_ends.map(|ends| self.until(ends)).hash(state);
        sent.is_some().hash(state);
        if self.is_calm {
            // A worker rests half a lease at most, and is not nudged.
            let rest = LEASE.to_duration() / 2;
            let (sent, next) = (sent.map(|sent| self.since(sent)), next_at.map(|at| self.until(at)));
            (again, more, dry, poll.min(&rest), sent.map(|sent| sent.min(rest))).hash(state);
            (next.filter(|next| *next < rest), notified, in_vain).hash(state);
        }
    }

    fn held<H: Hasher>(&self, held: &Held, state: &mut H) {
        (held.leased.len(), held.running.len(), held.ended.len(), held.void.len()).hash(state);
        for leased in held.leased.values() {
            self.run(leased.task.id, leased.task.token).hash(state);
        }
        for (id, Running { token, asked, weight: _, progress: _, is_unreported: _, over }) in &held.running {
            (self.run(*id, *token), asked, over).hash(state);
        }
        held.ended.values().for_each(|completion| self.complete(completion, state));
        held.void.keys().for_each(|run| self.run(run.id, run.token).hash(state));
    }

    fn complete<H: Hasher>(&self, Completion { id, token, outcome }: &Completion, state: &mut H) {
        self.run(*id, *token).hash(state);
        match outcome {
            Outcome::Done(result) => (0, result.as_str()).hash(state),
            Outcome::Error(_) => 1.hash(state),
            Outcome::Retry(after, _) => (2, after).hash(state),
            Outcome::Failed(_) => 3.hash(state),
            Outcome::Released => 4.hash(state),
            Outcome::Exchanged => 5.hash(state),
            _ => 6.hash(state),
        }
    }

    fn step<H: Hasher>(&self, step: &Step, numbers: &Numbers, state: &mut H) {
        let Step {
            worker: _,
            label: _,
            sequence,
            acknowledged,
            lease,
            kinds,
            complete,
            held,
            // No run of the model logs or reports progress.
            progress: _,
            log: _,
            want,
            ahead,
            at_least,
            free_capacity,
        } = step;
        (numbers.rank(*sequence), *acknowledged == 0, lease, kinds, want, ahead, at_least, free_capacity)
            .hash(state);
        complete.len().hash(state);
        complete.iter().for_each(|completion| self.complete(completion, state));
        held.as_ref().map(Vec::len).hash(state);
        held.iter().flatten().for_each(|(id, token)| self.run(*id, *token).hash(state));
    }

    fn stepped<H: Hasher>(&self, stepped: &Stepped, state: &mut H) {
        let Stepped { resync, leased, may_prefetch, lost, stop, next, more, schedules: _, refused: _ } =
            stepped;
        // What is later than a worker rests is later.
        let next = next.filter(|next| next.to_duration() < LEASE.to_duration() / 2);
        (resync, may_prefetch).hash(state);
        if self.is_calm {
            (more, next).hash(state);
        }
        for leased in leased {
            self.run(leased.task.id, leased.task.token).hash(state);
        }
        lost.iter().for_each(|id| (1, number(*id)).hash(state));
        stop.iter().for_each(|(id, stop)| (2, number(*id), stop).hash(state));
    }

    /// Labels, room and the store's clock are for people. That a presence has ended is all that counts of when.
    fn presence(&self, presence: &Presence, numbers: &Numbers) -> impl Hash {
        let Presence {
            worker: _,
            label: _,
            sequence,
            lease,
            ends,
            kinds: _,
            version: _,
            since: _,
            seen: _,
            busy,
            cleared,
            at_least: _,
            room: _,
        } = presence;
        (numbers.rank(*sequence), *lease, *ends - self.lease_clock(), *busy, *cleared)
    }

    fn lease_clock(&self) -> Micros {
        self.world.stored.queue.as_ref().map_or(Micros::ZERO, |queue| queue.lease_clock)
    }

    fn rows<H: Hasher>(&self, members: &[(u64, WorkerId)], state: &mut H) {
        let stored = &self.world.stored;
        if let Some(queue) = &stored.queue {
            let Queue {
                settings,
                paused,
                paused_at: _,
                incarnation: _,
                lease_clock,
                seen,
                latest: _,
                maintenance_due,
                rebalance_after,
                followed: _,
            } = queue;
            // Attempts rise with every lease, so that tokens do whatever their incarnation.
            let alive = stored.presences.values().any(|presence| presence.ends > *lease_clock);
            let silence = (self.world.now - *seen).min(if alive { TICK } else { LONG });
            (settings.max_running, settings.key_limit, paused, silence, maintenance_due).hash(state);
            rebalance_after.is_some().hash(state);
        }
        let mut order: Vec<_> = stored.tasks.values().map(Task::order).collect();
        order.sort_unstable();
        let mut added: Vec<_> = stored.tasks.values().map(|x| x.added).collect();
        added.sort_unstable();
        added.dedup();
        for x in stored.tasks.values() {
            let worker = x.worker.filter(|_| x.state == State::Leased);
            worker.map(|worker| members.iter().position(|(_, id)| *id == worker)).hash(state);
            order.iter().position(|other| *other == x.order()).hash(state);
            added.iter().position(|other| *other == x.added).hash(state);
            self.task(x, state);
        }
        for edge in stored.edges.values() {
            let Edge { up, down, name: _, on_failure, state: is, generation } = edge;
            (number(*up), number(*down), on_failure, is, generation).hash(state);
        }
        // Whether somebody serves a kind is asked for keys alone.
        let has_keys = stored.tasks.values().any(|x| x.key.is_some());
        for row in stored.kinds.values().filter(|_| has_keys) {
            let KindRow { kind, paused, paused_at: _, served_until, open, needs_rebalancing } = row;
            (kind, paused, *served_until - self.lease_clock(), open, needs_rebalancing).hash(state);
        }
        for row in stored.keys.values() {
            let KeyRow { key, limit, paused_at: _, needs_rebalancing } = row;
            (key, limit, needs_rebalancing).hash(state);
        }
    }

    fn task<H: Hasher>(&self, x: &Task, state: &mut H) {
        let Task {
            id,
            kind,
            priority,
            key,
            ordered,
            unique,
            holds_name,
            weight: _,
            tags: _,
            deadline,
            not_before,
            policy,
            due,
            added,
            // Of equals, order has it.
            position: _,
            has_edges,
            schedule: _,
            state: is,
            holds_key,
            unserved,
            token,
            failures,
            retries,
            returns,
            generation,
            worker: _,
            // For people alone.
            admitted: _,
            trace: _,
            leased,
            prefetched,
            stop,
            progress: _,
            ended: _,
            ended_lease_clock: _,
            notified,
            retained,
            error: _,
            history: _,
        } = x;
        (self.run(*id, *token), kind, priority, key, ordered, unique, holds_name, policy, has_edges)
            .hash(state);
        // What comes later is added later, or now.
        let (_, is_of_now) = (due, *added >= self.world.now);
        is_of_now.hash(state);
        (deadline.map(|at| self.ticks_until(at)), self.ticks_until(*not_before)).hash(state);
        // A task that was given back is not prefetched. After twenty returns in a row a task waits; the
        // trace of a state has the fewest actions, so that many are not in it.
        (is, holds_key, unserved, failures, retries, generation).hash(state);
        (*returns == 0, leased.is_some(), prefetched, stop, notified, retained).hash(state);
    }
}
