//! A wrapper that makes any store fail on demand.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use interval_queue_contract::{Changes, Command, QueueName, Reply, SharedState, StateError, StateErrorKind};

use crate::random::Random;

/// Any store, with faults that a test controls and a count of its calls.
///
/// A clone shares faults and counts: for separate faults, wrap two handles. Delays follow tokio's
/// clock, including virtual time. Random faults repeat with the [seed](Faulty::seeded).
///
/// # Cancel safety
///
/// Dropped in the delay before, a command has had no effect; in the delay after, it has.
#[derive(Clone, Debug)]
pub struct Faulty {
    inner: Arc<dyn SharedState>,
    faults: Arc<Mutex<Inside>>,
}

/// The faults of a store. Default: none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Every command fails at once as [`Unreachable`](StateErrorKind::Unreachable), without effect.
    pub outage: bool,
    /// Share of commands (0 to 1) whose request is lost: no effect, and a timeout.
    pub lose_request: f64,
    /// Share of commands (0 to 1) whose reply is lost: they take **effect**, and time out.
    pub lose_reply: f64,
    /// How long a lost command takes to time out.
    pub time_out: Duration,
    /// Delay of each request.
    pub delay_before: Duration,
    /// Delay of each reply.
    pub delay_after: Duration,
    /// Whether each delay is a random part of the given value.
    pub vary_delays: bool,
}

/// The calls of a [`Faulty`] store, including failed ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls with [`Command::Step`].
    pub steps: u64,
    /// Calls with [`Command::Change`].
    pub changes: u64,
    /// Calls with [`Command::Read`].
    pub reads: u64,
    /// Calls of [`SharedState::queues`].
    pub lists: u64,
    /// Calls of [`SharedState::changes`].
    pub watches: u64,
    /// Failed calls, by an injected error or not.
    pub errors: u64,
}

impl Counts {
    /// All calls of any kind and outcome.
    pub fn total(&self) -> u64 {
        self.steps + self.changes + self.reads + self.lists + self.watches
    }
}

#[derive(Debug)]
struct Inside {
    faults: Faults,
    next: VecDeque<Lost>,
    counts: Counts,
    random: Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    Request,
    Reply,
}

/// Delay of the request, lost part, delay of the reply.
type Fate = (Duration, Option<Lost>, Duration);

impl Faulty {
    /// Wraps a store, without faults at first.
    pub fn new(inner: impl SharedState) -> Self {
        let inside = Inside {
            faults: Faults::default(),
            next: VecDeque::new(),
            counts: Counts::default(),
            random: Random::seeded(0),
        };
        Self { inner: Arc::new(inner), faults: Arc::new(Mutex::new(inside)) }
    }

    /// Sets the seed of random faults. Default: 0.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Self {
        self.inside().random = Random::seeded(seed);
        self
    }

    /// Sets the faults from the next command on. `Faults::default()` removes all.
    pub fn set(&self, faults: Faults) {
        self.inside().faults = faults;
    }

    /// Changes the faults from the next command on: `|faults| faults.outage = true`.
    pub fn change(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.inside().faults);
    }

    /// Loses the request of the next command; repeated calls affect later commands.
    pub fn lose_next_request(&self) {
        self.inside().next.push_back(Lost::Request);
    }

    /// Loses the reply of the next command; repeated calls affect later commands.
    pub fn lose_next_reply(&self) {
        self.inside().next.push_back(Lost::Reply);
    }

    /// The calls so far.
    pub fn counts(&self) -> Counts {
        self.inside().counts
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn suffer<T>(
        &self,
        count: impl FnOnce(&mut Counts),
        work: impl Future<Output = Result<T, StateError>>,
    ) -> Result<T, StateError> {
        let (fate, time_out) = {
            let mut inside = self.inside();
            count(&mut inside.counts);
            (inside.fate(), inside.faults.time_out)
        };
        let outcome = match fate {
            Some(fate) => befall(fate, time_out, work).await,
            None => {
                let text = "the state is cut off: end the injected outage";
                Err(StateError::new(StateErrorKind::Unreachable, text))
            }
        };
        self.inside().counts.errors += u64::from(outcome.is_err());
        outcome
    }
}

impl Inside {
    /// Decided when a command starts, so that a seed gives the same faults with any delays.
    fn fate(&mut self) -> Option<Fate> {
        if self.faults.outage {
            return None;
        }
        let mut delay = |whole: Duration| match self.faults.vary_delays {
            true => whole.mul_f64(self.random.share()),
            false => whole,
        };
        let (before, after) = (delay(self.faults.delay_before), delay(self.faults.delay_after));
        let lost = self.next.pop_front().or_else(|| {
            let shares = [(self.faults.lose_request, Lost::Request), (self.faults.lose_reply, Lost::Reply)];
            let lost = shares.into_iter().find(|(share, _)| self.random.happens(*share));
            lost.map(|(_, lost)| lost)
        });
        Some((before, lost, after))
    }
}

async fn befall<T>(
    (before, lost, after): Fate,
    time_out: Duration,
    work: impl Future<Output = Result<T, StateError>>,
) -> Result<T, StateError> {
    let timed_out = |what| {
        let message = format!("no answer in time: the {what} was lost on purpose");
        Err(StateError::new(StateErrorKind::TimedOut, message))
    };
    pass(before).await;
    if lost == Some(Lost::Request) {
        pass(time_out).await;
        return timed_out("request");
    }
    let outcome = work.await;
    if lost == Some(Lost::Reply) {
        pass(time_out).await;
        return timed_out("reply");
    }
    pass(after).await;
    outcome
}

async fn pass(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

#[async_trait]
impl SharedState for Faulty {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let kind: fn(&mut Counts) = match command {
            Command::Step(_) => |counts| counts.steps += 1,
            Command::Change(..) => |counts| counts.changes += 1,
            _ => |counts| counts.reads += 1,
        };
        self.suffer(kind, self.inner.apply(queue, command)).await
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        self.suffer(|counts| counts.lists += 1, self.inner.queues()).await
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.suffer(|counts| counts.watches += 1, self.inner.changes(queue)).await
    }
}
