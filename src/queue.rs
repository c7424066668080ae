//! The handle that applications hold.

use std::{sync::Arc, time::Duration};

use interval_queue_contract::{InvalidInput, QueueName, Rates, Settings, ShardId};

use crate::{
    JobOptions,
    error::Error,
    shard::{Shard, Terms},
};

/// A slot that comes within this time is now.
const LEAST_GRACE: Duration = Duration::from_millis(10);

/// A shard of a queue: adds jobs that start at the one pace that all shards of that name share.
///
/// Cloning gives another handle to the same shard. Jobs that were accepted run also when every handle is
/// dropped, as long as the runtime lives.
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

    /// The id of this shard: random, new with every one that is opened.
    pub fn shard_id(&self) -> ShardId {
        self.shard.line().identity.shard.clone()
    }

    /// The settings in force, as far as this shard knows.
    pub fn settings(&self) -> Settings {
        self.shard.line().contact.memory.settings()
    }

    /// The settings that this shard was opened with, if the queue was there with others that were
    /// [kept](crate::OnExisting::Keep) and differ still. None: what was asked for is in force.
    pub fn overruled_settings(&self) -> Option<Settings> {
        self.shard.overruled.filter(|asked| *asked != self.settings())
    }

    /// The interval in force, as far as this shard knows; of several rates that of the fastest.
    pub fn interval(&self) -> Duration {
        self.shard.line().contact.memory.interval().to_duration()
    }

    /// The rates in force, as far as this shard knows.
    pub fn rates(&self) -> Rates {
        self.shard.line().contact.memory.meters.rates()
    }

    /// How many jobs of all shards may run at once, as far as this shard knows. None: any number.
    pub fn max_running(&self) -> Option<u32> {
        self.shard.line().contact.memory.max_running
    }

    pub(crate) fn terms(&self, options: &JobOptions) -> Result<Terms, InvalidInput> {
        let interval = self.shard.line().contact.memory.meters.longest();
        options.terms(interval, self.shard.host.now(), self.grace())
    }

    /// What counts as now: what an answer of the state may take.
    pub(crate) fn grace(&self) -> Duration {
        self.shard.lead().get().to_duration().max(LEAST_GRACE)
    }

    /// In how long a new job with these options would start if every ticket before it is used; none while the
    /// queue is paused. Takes no ticket. Reads the record unless this shard heard of it in the last 50 ms.
    /// What the jobs of other shards weigh is not known.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) for options that cannot be used, and
    /// [`State`](crate::ErrorKind::State) if the state cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn quote(&self, options: &JobOptions) -> Result<Option<Duration>, Error> {
        let terms = self.terms(options)?;
        self.shard.quote(&terms).await
    }

    /// How many jobs of this shard wait for their start.
    pub fn waiting(&self) -> usize {
        self.shard.line().backlog.len()
    }

    /// How many jobs of this shard run.
    pub fn running(&self) -> usize {
        self.shard.line().running.len()
    }
}
