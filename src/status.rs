//! How a queue stands, and why nothing is starting.

use std::{fmt, time::Duration};

use interval_queue_contract::{QueueName, ShardId, Snapshot, Standing};

/// How the queue stands, seen from one shard; made by
/// [`IntervalQueue::status`](crate::IntervalQueue::status).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// The queue.
    pub queue: QueueName,
    /// The shard that looked.
    pub shard: ShardId,
    /// How many jobs of this shard wait for their start.
    pub waiting: usize,
    /// How many jobs of this shard run.
    pub running: usize,
    /// Whether this shard takes no more jobs.
    pub closed: bool,
    /// What the next start waits for.
    pub reason: Reason,
    /// The shared record; none if the state could not be read.
    pub shared: Option<Snapshot>,
}

/// What the next start of a queue waits for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// Where the queue stands: empty, paused, held, behind a ticket of some shard, or at its running limit.
    Standing(Standing),
    /// The shared state does not answer. Nothing starts until it does, unless the shard runs alone.
    StateUnreachable {
        /// For how long already.
        since: Duration,
        /// What it said last.
        error: String,
        /// The time between two starts of this shard, if it runs alone; see
        /// [`WhenStateIsLost`](crate::WhenStateIsLost).
        alone: Option<Duration>,
    },
    /// There is no such queue any more; the next job brings it back.
    Gone,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Standing(standing) => standing.fmt(f),
            Reason::StateUnreachable { since, error, alone } => {
                write!(f, "state unreachable for {:.1} s: {error}", since.as_secs_f64())?;
                alone.map_or(Ok(()), |pace| write!(f, "; running alone at one start every {pace:?}"))
            }
            Reason::Gone => f.write_str("the record is gone; the next job brings it back"),
        }
    }
}
