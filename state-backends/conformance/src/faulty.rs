//! A state backend that fails on demand, around one that works.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use interval_queue_contract::{Changes, Command, QueueName, Reply, SharedState, StateError, StateErrorKind};

use crate::random::Random;

/// Any state backend, with faults that a test switches on and off, and a count of what it was asked.
///
/// A clone shares faults and counts. For two shards with faults of their own, wrap two handles on one state.
/// Delays are tokio's, so they pass in virtual time too. Random faults repeat with the
/// [seed](Faulty::seeded).
///
/// # Cancel safety
///
/// A future dropped in the delay before has not happened; one dropped in the delay after has.
#[derive(Clone, Debug)]
pub struct Faulty {
    inner: Arc<dyn SharedState>,
    faults: Arc<Mutex<Inside>>,
}

/// What is wrong with a state. The default: nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Every command fails at once as [`Unreachable`](StateErrorKind::Unreachable) and does not happen.
    pub outage: bool,
    /// In this share of the commands (0 to 1) the request is lost: it does not happen and times out.
    pub lose_request: f64,
    /// In this share of the commands (0 to 1) the reply is lost: it **happens** and times out.
    pub lose_reply: f64,
    /// How long a command that got lost takes to time out.
    pub time_out: Duration,
    /// How long a request is under way.
    pub delay_before: Duration,
    /// How long a reply is under way.
    pub delay_after: Duration,
    /// Whether each delay is a random part of the one given, instead of all of it.
    pub vary_delays: bool,
}

/// What a [`Faulty`] state was asked so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// [`Command::Step`], also those that failed.
    pub steps: u64,
    /// [`Command::Change`], also those that failed.
    pub changes: u64,
    /// [`Command::Read`], also those that failed.
    pub reads: u64,
    /// [`SharedState::queues`], also those that failed.
    pub lists: u64,
    /// [`SharedState::changes`], also those that failed.
    pub watches: u64,
    /// How many of all these ended in an error, injected or not.
    pub errors: u64,
}

impl Counts {
    /// All commands, whatever their kind and outcome.
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

/// What becomes of one command: how long the request is under way, what gets lost, and how long the reply is.
type Fate = (Duration, Option<Lost>, Duration);

impl Faulty {
    /// Wraps a state; nothing is wrong with it yet.
    pub fn new(inner: impl SharedState) -> Self {
        let inside = Inside {
            faults: Faults::default(),
            next: VecDeque::new(),
            counts: Counts::default(),
            random: Random::seeded(0),
        };
        Self { inner: Arc::new(inner), faults: Arc::new(Mutex::new(inside)) }
    }

    /// The same state with the random faults of this seed. The default is 0.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Self {
        self.inside().random = Random::seeded(seed);
        self
    }

    /// What is wrong from the next command on. `Faults::default()` mends everything.
    pub fn set(&self, faults: Faults) {
        self.inside().faults = faults;
    }

    /// Changes what is wrong from the next command on, for example `|faults| faults.outage = true`.
    pub fn change(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.inside().faults);
    }

    /// The request of one coming command is lost, after those that were ordered before.
    pub fn lose_next_request(&self) {
        self.inside().next.push_back(Lost::Request);
    }

    /// The reply of one coming command is lost, after those that were ordered before.
    pub fn lose_next_reply(&self) {
        self.inside().next.push_back(Lost::Reply);
    }

    /// What it was asked so far.
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
    /// Decides about a command at once, so that a seed gives the same faults however delays interleave.
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
