//! [`Connection`]: what a shard last learned from its store.

use std::time::{Duration, Instant};

use interval_queue_contract::{Memory, Micros, StateError, Step, Stepped, WaitReason};
use tokio::sync::watch;

use crate::IntervalQueue;

/// What a shard last learned from its store, without I/O; see
/// [`IntervalQueue::connection`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Connection {
    /// Set while the store fails.
    pub failing: Option<Failing>,
    /// Whether the queue is paused.
    pub paused: bool,
    /// Why the first ticket of this shard waits. `None`: unknown, or no ticket waits.
    pub wait: Option<WaitReason>,
    /// When this shard starts its next job if every earlier ticket is used. `None`: unknown.
    pub next_start: Option<Instant>,
}

/// An outage of a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failing {
    /// When the first failure was noticed, by the clock of the [`Host`](crate::Host).
    pub since: Instant,
    /// The last error. If [`StateError::is_retryable`] is false, somebody must act.
    pub error: StateError,
}

impl Failing {
    /// Records a failure noticed at `at`. The first failure of an outage sets its beginning.
    pub fn record(outage: &mut Option<Self>, error: &StateError, at: Instant) {
        let since = outage.as_ref().map_or(at, |failing| failing.since);
        *outage = Some(Self { since, error: error.clone() });
    }
}

impl Connection {
    pub(crate) fn after(step: &Step, stepped: &Stepped, received: Instant) -> Self {
        let memory = stepped.memory;
        let first = step.ask.first().map(|ask| ask.ticket).or(stepped.taken.map(|taken| taken.first));
        let granted = stepped.grants.first().map(|grant| grant.slot - memory.at);
        let start_in = granted.or_else(|| first.map(|ticket| memory.slot_in(ticket)));
        Self {
            failing: None,
            paused: memory.paused,
            wait: stepped.wait.as_ref().map(|wait| wait.reason.clone()),
            next_start: start_in.map(|start_in| received + start_in.to_duration()),
        }
    }
}

impl IntervalQueue {
    /// What this shard last learned from its store. The receiver is notified of every poll that is
    /// answered or fails, for example to print an outage or a pause.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use interval_queue::IntervalQueue;
    /// let queue = IntervalQueue::builder("mail").interval(Duration::from_millis(100)).connect("memory:").await?;
    /// let mut connection = queue.connection();
    /// let job = queue.add(async {}).await?;
    /// connection.changed().await?;
    /// assert!(connection.borrow().failing.is_none() && !connection.borrow().paused);
    /// # job.await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn connection(&self) -> watch::Receiver<Connection> {
        self.shard.connection.subscribe()
    }

    /// How many jobs of this weight can start up to `horizon` after the next start, that start
    /// included, by the record as last seen: 1 to `most`. Other shards may take some of the slots.
    pub fn starts_within(&self, horizon: Duration, weight: u32, most: usize) -> usize {
        let seen = {
            let connection = &self.shard.line().connection;
            let age = self.shard.host.now().saturating_duration_since(connection.last_reply);
            Memory { at: connection.memory.at + Micros::from_duration(age), ..connection.memory }
        };
        let last = seen.slot_behind(0, weight) + Micros::from_duration(horizon);
        let starts = (1..most as u64).take_while(|n| seen.slot_behind(n * u64::from(weight), weight) <= last);
        1 + starts.count()
    }
}
