//! Ways to break the queue on purpose, so that the checks can be checked: each must fail for one of them.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use interval_queue::{
    Host,
    contract::{Micros, Step, Stepped},
};

/// What is wrong with a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// Every few grants it is given the slot of the grant before once more.
    SlotTwice,
    /// The slot of its lowest ticket is used for the one behind it, which so passes those of others in
    /// between.
    Swapped,
    /// Its clock stands still while it is stopped, so it uses the grants that it had in hand.
    Stale,
}

impl Fault {
    pub const ALL: [Self; 4] = [Self::None, Self::SlotTwice, Self::Swapped, Self::Stale];

    pub(super) fn number(self) -> u64 {
        self as u64
    }

    pub(super) fn numbered(number: u64) -> Self {
        Self::ALL[usize::try_from(number).unwrap()]
    }
}

/// Spoils what the state grants.
#[derive(Debug)]
pub(super) struct Replies {
    fault: Fault,
    /// How many grants there were, and the last slot.
    seen: Mutex<(u64, Micros)>,
}

impl Replies {
    const EVERY: u64 = 3;

    pub(super) fn new(fault: Fault) -> Self {
        Self { fault, seen: Mutex::new((0, Micros::ZERO)) }
    }

    pub(super) fn spoil(&self, step: &Step, stepped: &mut Stepped) {
        let (count, last) = &mut *self.seen.lock().unwrap();
        for grant in &mut stepped.grants {
            *count += 1;
            let is_hit = *count % Self::EVERY == 0;
            match self.fault {
                Fault::SlotTwice if is_hit && *last > stepped.memory.at => grant.slot = *last,
                Fault::Swapped if is_hit => grant.ticket = step.then.unwrap_or(grant.ticket),
                _ => {}
            }
            *last = grant.slot;
        }
    }
}

/// A host whose clock does not notice that the process was stopped.
#[derive(Debug)]
pub(super) struct Stopless(Mutex<(Instant, Duration)>);

impl Default for Stopless {
    fn default() -> Self {
        Self(Mutex::new((real(), Duration::ZERO)))
    }
}

#[allow(clippy::disallowed_methods, reason = "the tests' own clock")]
fn real() -> Instant {
    Instant::now()
}

impl Host for Stopless {
    fn now(&self) -> Instant {
        /// Shards of a busy queue look at their clock more often.
        const MOST: Duration = Duration::from_millis(50);
        let (last, hidden) = &mut *self.0.lock().unwrap();
        let now = real();
        *hidden += (now - *last).saturating_sub(MOST);
        *last = now;
        now - *hidden
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(deadline.saturating_duration_since(self.now())))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        tokio::task::spawn_blocking(work);
    }

    fn random(&self) -> u64 {
        rand::random()
    }
}
