//! A worker: the machine that is shipped, and what is on its way between it and the store.

use std::{
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use interval_queue_contract::{Label, Micros, StateErrorKind};
use interval_queue_task_contract::{Kind, Step, Stepped};
use interval_queue_worker::{Identity, RunId, UnderWay, Worker};

use super::task_setup::{LEASE, Setup, worker};

/// How a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Life {
    /// It has not said anything yet.
    New,
    /// It lives.
    Alive,
    /// It has died, or stopped.
    Gone,
}

/// The one step that is under way.
#[derive(Clone, Debug, Default)]
pub(crate) enum Wire {
    #[default]
    Idle,
    Sent(Arc<Step>),
    /// The reply to the step with this number is on its way, or why it was refused.
    Answered(u64, Arc<Result<Stepped, StateErrorKind>>),
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) generation: Life,
    pub(crate) worker: Arc<Worker>,
    pub(crate) wire: Wire,
    /// Requests that nobody waits for any more and that may arrive all the same.
    pub(crate) strays: Vec<Arc<Step>>,
    /// Only of flawed workers: an answer that came too late.
    pub(crate) stale: Option<(UnderWay, Arc<Result<Stepped, StateErrorKind>>)>,
}

impl Member {
    pub(crate) fn new(setup: &Setup, n: usize) -> Self {
        let identity = Identity {
            worker: worker(n),
            label: Label::default(),
            kinds: vec![Kind::default()],
            lease: LEASE,
            permits: setup.permits.0,
            prefetch: setup.permits.1,
            capacity: None,
        };
        let worker = Arc::new(Worker::new(identity));
        Self { generation: Life::New, worker, wire: Wire::Idle, strays: Vec::new(), stale: None }
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.generation != Life::Gone
    }

    /// Whether its lease lasts by its own clock.
    pub(crate) fn believes(&self, now: Micros) -> bool {
        self.is_alive() && self.worker.connection.lease_ends.is_some_and(|ends| ends > instant(now))
    }

    /// What it has not given back, and was not told to be without.
    pub(crate) fn holds(&self) -> impl Iterator<Item = RunId> {
        let held = &self.worker.held;
        let hand = held.leased.values().map(|leased| RunId { id: leased.task.id, token: leased.task.token });
        hand.chain(held.running.iter().map(|(&id, running)| RunId { id, token: running.token }))
    }

    /// Whether it could begin a run.
    pub(crate) fn can_start(&self, now: Micros) -> bool {
        let Worker { held, stopping, .. } = &*self.worker;
        self.believes(now) && !held.leased.is_empty() && stopping.is_none() && self.worker.free() > 0
    }

    /// It is no more; a request of it may arrive all the same.
    pub(crate) fn go(&mut self, setup: &Setup, n: usize) {
        let mut strays = std::mem::take(&mut self.strays);
        if let Wire::Sent(step) = std::mem::take(&mut self.wire) {
            strays.push(step);
        }
        *self = Self { generation: Life::Gone, strays, ..Self::new(setup, n) };
    }
}

static BEGINNING: LazyLock<Instant> = LazyLock::new(|| {
    #[allow(clippy::disallowed_methods, reason = "any instant does, only differences count")]
    Instant::now()
});

/// What the clocks of workers show when that of the store shows this.
pub(crate) fn instant(at: Micros) -> Instant {
    *BEGINNING + at.to_duration()
}

/// Before all that is told of.
pub(crate) fn long_ago() -> Instant {
    *BEGINNING
}

/// How long it is until then; none: it has come.
pub(crate) fn until(at: Instant, now: Micros) -> Duration {
    at.saturating_duration_since(instant(now))
}

/// How long ago it was.
pub(crate) fn since(at: Instant, now: Micros) -> Duration {
    instant(now).saturating_duration_since(at)
}
