//! [`IntervalQueue`], the handle to a shard that applications hold.

use std::{sync::Arc, time::Duration};

use interval_queue_contract::{InvalidInput, Memory, Micros, QueueName, Rates, Settings, ShardId};
use tokio::sync::watch;

use crate::{
    JobOptions,
    connection::Connection,
    error::Error,
    shard::{Shard, Terms},
};

const MIN_GRACE: Duration = Duration::from_millis(10);

/// A shard of a queue. It adds jobs, which start at the rate that all shards of the queue share.
///
/// A clone is another handle to the same shard. Accepted jobs run even after all handles are
/// dropped, until the runtime ends.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use interval_queue::IntervalQueue;
///
/// let queue = IntervalQueue::builder("mail").interval(Duration::from_millis(100)).connect("memory:").await?;
/// let job = queue.add(async { "sent" }).await?; // is in the line
/// assert_eq!(job.await?, "sent");               // has run, at its slot
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct IntervalQueue {
    pub(crate) shard: Arc<Shard>,
}

impl IntervalQueue {
    /// The name of the queue.
    pub fn name(&self) -> &QueueName {
        &self.shard.queue
    }

    /// The id of this shard: random, new with each opening.
    pub fn shard_id(&self) -> ShardId {
        self.shard.line().identity.shard.clone()
    }

    /// The settings in force, as last seen by this shard.
    pub fn settings(&self) -> Settings {
        self.shard.line().connection.memory.settings()
    }

    /// The settings that this shard was opened with, if the queue [kept](crate::OnExisting::Keep)
    /// others and still differs. `None`: they are in force.
    pub fn overruled_settings(&self) -> Option<Settings> {
        self.shard.overruled.filter(|asked| *asked != self.settings())
    }

    /// The interval in force, as last seen by this shard; with several rates, that of the fastest.
    pub fn interval(&self) -> Duration {
        self.shard.line().connection.memory.interval().to_duration()
    }

    /// The rates in force, as last seen by this shard.
    pub fn rates(&self) -> Rates {
        self.shard.line().connection.memory.meters.rates()
    }

    /// Maximum running jobs of all shards, as last seen by this shard. `None`: unlimited.
    pub fn max_running(&self) -> Option<u32> {
        self.shard.line().connection.memory.max_running
    }

    pub(crate) fn terms(&self, options: &JobOptions) -> Result<Terms, InvalidInput> {
        let interval = self.shard.line().connection.memory.meters.longest();
        options.terms(interval, self.shard.host.now(), self.grace())
    }

    /// The delay within which a start is immediate: the lead, which covers a reply, or at least 10
    /// ms.
    pub(crate) fn grace(&self) -> Duration {
        self.shard.lead().get().to_duration().max(MIN_GRACE)
    }

    /// The estimated delay until a new job with these options starts, if all earlier tickets are
    /// used. `None`: the queue is paused. Takes no ticket. Reads the record unless this shard has
    /// seen it within 50 ms. Does not know the weights of other shards' jobs.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) for invalid options,
    /// [`State`](crate::ErrorKind::State) if the store cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn estimate_wait(&self, options: &JobOptions) -> Result<Option<Duration>, Error> {
        let terms = self.terms(options)?;
        self.shard.estimate_wait(&terms).await
    }

    /// The connection to the store, as of the last poll. The receiver is notified of every poll that
    /// is answered or fails, for example to print an outage or a pause.
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

    /// Jobs of this shard that wait for their start.
    pub fn waiting(&self) -> usize {
        self.shard.line().backlog.len()
    }

    /// Jobs of this shard that run.
    pub fn running(&self) -> usize {
        self.shard.line().running.len()
    }
}
