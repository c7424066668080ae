//! Wrong variants of the rules and of the workers. The rules and the worker themselves stay as they are: a flaw
//! tampers with what goes into them, with the rows that they find, and with what comes out.

use std::time::Instant;

use interval_queue_contract::{Micros, StateError};
use interval_queue_memory::Tables;
use interval_queue_task_contract::{Command, Reply, Step, rules};
use interval_queue_worker::{Next, Prefetch, Worker};

use super::{
    Setup,
    rows::Flawed,
    task_setup::{LEASE, TICK},
};

/// What is wrong with the rules or the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Rules: a completion is obeyed whatever its token.
    NoFence,
    /// Rules: a step that was overtaken by a later one is obeyed.
    NoSequence,
    /// Rules: the lease of a worker never ends.
    NoLease,
    /// Rules: a key that got free lets nobody in.
    NoHandOver,
    /// Rules: nobody downstream is told of an end.
    EndsNotNotified,
    /// Rules: a task does not wait for its upstreams.
    EdgesForgotten,
    /// Rules: a lease that ended with its worker does not count.
    DeathsForgotten,
    /// Rules: a retried task takes its unique name, whoever has it by now.
    RetryTakesName,
    /// Rules: what is leased already does not count against the limit.
    LimitForgotten,
    /// Rules: a run that was asked to stop ends as if it was not.
    StopForgotten,
    /// Rules: the least urgent is leased first.
    LastComesFirst,
    /// Worker: it never says what it holds after its first step.
    NoRestating,
    /// Worker: it goes on beyond the end of its lease.
    NeverExpires,
    /// Worker: it counts its lease from the answer.
    CountsFromAnswer,
    /// Worker: it uses the answer to a step that it had given up.
    UsesLateAnswer,
    /// Worker: it says nothing of runs that its lease ended on.
    ForgetsRuns,
}

/// The real rules, unless a flaw tampers with them.
pub(crate) fn apply(
    setup: &Setup,
    tables: &mut Tables,
    now: Micros,
    command: &Command,
) -> Result<Reply, StateError> {
    match (setup.flaw, setup.share) {
        (Some(flaw), _) => rules::apply(&mut Flawed { tables, flaw, command }, now, command),
        (None, Some(share)) => rules::apply_with_budget(tables, now, share, command),
        (None, None) => rules::apply(tables, now, command),
    }
}

/// What a worker does next.
pub(crate) fn next(flaw: Option<Flaw>, worker: &mut Worker, now: Instant) -> Next {
    // Nothing here takes time, so a worker cannot measure its speed: it prefetches as much as it may.
    let round_trip = TICK.to_duration();
    worker.prefetch = Prefetch { is_open: true, begun: u32::MAX, round_trip };
    let mut next = worker.next(now);
    // What is said once a lease whatever happened heals roll-backs, of which there are none here.
    worker.connection.listed = Some(now + LEASE.to_duration() * 1_000);
    if flaw == Some(Flaw::ForgetsRuns) {
        worker.held.running.retain(|_, run| !run.over);
        while worker.order().is_some() {}
        if matches!(next, Next::Sleep(_)) {
            next = worker.next(now);
        }
    }
    if let (Some(Flaw::NoRestating), Next::Send(step)) = (flaw, &mut next) {
        let Step { sequence, held, .. } = &mut **step;
        held.take_if(|_| *sequence > 1);
    }
    next
}

/// A worker has taken in a reply, which leaves it with a new lease or none.
pub(crate) fn heard(flaw: Option<Flaw>, worker: &mut Worker, now: Instant) {
    let lease = match flaw {
        Some(Flaw::NeverExpires) => TICK * 1_000,
        Some(Flaw::CountsFromAnswer) => LEASE,
        _ => return,
    };
    let ends = &mut worker.connection.lease_ends;
    *ends = ends.map(|_| now + lease.to_duration());
}
