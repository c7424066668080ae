//! [`Status`]: the status of a queue, and why nothing starts.

use std::{fmt, time::Duration};

use interval_queue_contract::{Micros, QueueName, Settings, ShardId, Snapshot, StartStatus};
use serde::{Serialize, Serializer};

/// The status of a queue, seen from one shard; made by
/// [`IntervalQueue::status`](crate::IntervalQueue::status).
///
/// `Display` prints one line for a log; the JSON can be served by the application:
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// # use interval_queue::IntervalQueue;
/// let queue = IntervalQueue::builder("mail").interval(Duration::from_millis(100)).connect("memory:").await?;
/// let status = queue.status().await;
/// assert_eq!(status.to_string(), "mail: empty: no job waits; here 0 wait and 0 run");
/// let json = serde_json::to_value(&status)?;
/// assert_eq!(json["reason"]["kind"], "empty");
/// assert_eq!(json["shared"]["record"]["meters"][0]["interval"], 100_000); // all times are microseconds
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// The queue.
    pub queue: QueueName,
    /// The shard that made this status.
    pub shard: ShardId,
    /// Jobs of this shard that wait for their start.
    pub waiting: usize,
    /// Jobs of this shard that run.
    pub running: usize,
    /// Whether this shard accepts no more jobs.
    pub closed: bool,
    /// The settings that this shard was opened with, if others were kept; see
    /// [`overruled_settings`](crate::IntervalQueue::overruled_settings).
    pub overruled: Option<Settings>,
    /// Why the next start waits.
    pub reason: Reason,
    /// The shared record. `None`: it does not exist or could not be read.
    pub shared: Option<Snapshot>,
}

/// Why the next start of a queue waits.
///
/// In JSON, `kind` is `state_unreachable`, `gone`, or the kind of the [`StartStatus`].
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The store does not reply. Nothing starts until it does, unless the shard runs alone.
    StateUnreachable {
        /// The time since the first failure.
        #[serde(rename = "since_us", serialize_with = "micros")]
        since: Duration,
        /// The last error.
        error: String,
        /// The time between two starts of this shard, if it runs alone; see
        /// [`WhenStateIsLost`](crate::WhenStateIsLost).
        #[serde(rename = "alone_us", serialize_with = "optional_micros")]
        alone: Option<Duration>,
    },
    /// The queue no longer exists; the next job restores it.
    Gone,
    /// The queue is empty, paused, held, at its running limit, or waits for a ticket of some shard.
    #[serde(untagged)]
    Start(StartStatus),
}

fn micros<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    Micros::from_duration(*duration).serialize(serializer)
}

fn optional_micros<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(Micros::from_duration).serialize(serializer)
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, waiting, running, reason, .. } = self;
        write!(f, "{queue}: {reason}; here {waiting} wait and {running} run")?;
        f.write_str(if self.closed { ", and no more are taken" } else { "" })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Start(status) => status.fmt(f),
            Reason::StateUnreachable { since, error, alone } => {
                write!(f, "store unreachable for {:.1} s: {error}", since.as_secs_f64())?;
                alone.map_or(Ok(()), |pace| write!(f, "; running alone at one start every {pace:?}"))
            }
            Reason::Gone => f.write_str("the record is gone; the next job brings it back"),
        }
    }
}
