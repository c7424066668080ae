//! What to know of a job besides its future.

use std::time::{Duration, Instant};

use interval_queue_contract::{InvalidInput, MAX_INTERVAL, Micros, check_weight};

use crate::{JobGroup, line, shard::Terms};

/// What to know of a job besides its future.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// use interval_queue::{ErrorKind, IntervalQueue, JobOptions};
///
/// let queue = IntervalQueue::builder("api").interval(Duration::from_secs(1)).connect("memory:").await?;
/// for page in 0..10 {
///     queue.add(async move { page }).await?;
/// }
/// // Before the pages that wait, unless it would take more than three seconds all the same.
/// let urgent = JobOptions::new().priority(1).start_within(Duration::from_secs(3));
/// assert_eq!(queue.job(async { "now" }).options(urgent.clone()).add().await?.await?, "now");
///
/// let too_late = queue.job(async { "never" }).options(urgent.priority(-1)).add().await;
/// assert_eq!(too_late.unwrap_err().kind(), ErrorKind::TooLate);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct JobOptions {
    pub(crate) weight: Option<u32>,
    priority: i32,
    pub(crate) start_within: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
    group: Option<JobGroup>,
}

impl JobOptions {
    /// The options of an ordinary job.
    pub const fn new() -> Self {
        Self { weight: None, priority: 0, start_within: None, timeout: None, group: None }
    }

    /// How many intervals the job takes: the next slot comes that many intervals after its own. Default 1, at
    /// most 1,000,000, and no more than 366 days of the queue's intervals.
    ///
    /// It is the next slot that comes later, so a heavy job waits no longer than a light one. Where one
    /// overtakes lighter jobs by its priority, the slots that were granted for them are lost: those within
    /// the lead, a few milliseconds as a rule. If it is cancelled within the lead, its intervals pass unused.
    pub const fn weight(mut self, weight: u32) -> Self {
        self.weight = Some(weight);
        self
    }

    /// Jobs of a higher priority start first, those of one priority in the order of adding. Default 0.
    ///
    /// It orders the jobs of one shard, up to the moment of the start: a new job takes the first ticket of
    /// its shard, and the others move back by one. Between shards it is the ticket that counts. Jobs of a low
    /// priority wait for as long as there are others.
    /// [`JobHandle::set_priority`](crate::JobHandle::set_priority) changes it later.
    pub const fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// How long after the call the job may start, at the latest. Zero: now or never, where now is as long as
    /// an answer of the state may take, at least 10 ms. Default: whenever its slot comes.
    ///
    /// A job is refused with [`TooLate`](crate::ErrorKind::TooLate), before it takes a ticket, if the start
    /// that is quoted for it is later: by the call, if its shard has heard of the record within the last
    /// second, else through its handle, once the shard has looked. The quote counts every ticket in front as
    /// used. A job that was accepted and would start too late by now, because of a pause, say, or of others
    /// that came first, is dropped and its handle gives the same error. Of jobs that are
    /// [added together](crate::IntervalQueue::jobs) each is refused by itself, through its handle. Of a job
    /// that is tried again it bounds the first start.
    pub const fn start_within(mut self, limit: Duration) -> Self {
        self.start_within = Some(limit);
        self
    }

    /// How long the job may run, from its start. Then it is dropped where it next waits, and its handle gives
    /// [`TimedOut`](crate::ErrorKind::TimedOut). Default: as long as it likes. For a job that is tried again
    /// it bounds every attempt.
    pub const fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// The group the job is cancelled with. Default: none.
    pub fn group(mut self, group: &JobGroup) -> Self {
        self.group = Some(group.clone());
        self
    }

    /// Whether they can be those of a turn.
    pub(crate) fn check_turn(&self) -> Result<(), InvalidInput> {
        match self.timeout {
            Some(limit) => Err(InvalidInput::new(format!(
                "timeout {limit:?} of a turn: put what you run there into a timeout of your own"
            ))),
            None => Ok(()),
        }
    }

    /// The terms on which a job that is added now waits.
    pub(crate) fn terms(
        &self,
        interval: Micros,
        now: Instant,
        grace: Duration,
    ) -> Result<Terms, InvalidInput> {
        let weight = self.weight.unwrap_or(1);
        check_weight(weight)?;
        if interval * u64::from(weight) > MAX_INTERVAL.max(interval) {
            let (interval, most) = (interval.to_duration(), MAX_INTERVAL.get() / interval.get().max(1));
            return Err(InvalidInput::new(format!(
                "weight {weight} of a queue with an interval of {interval:?} keeps it for more than 366 days: give at most {most}"
            )));
        }
        if self.timeout == Some(Duration::ZERO) {
            return Err(InvalidInput::new("timeout 0: give more than zero, or leave it out"));
        }
        let within = self.start_within.map(|limit| if limit.is_zero() { grace } else { limit });
        // A limit beyond what the clock can tell is no limit.
        let deadline = within.and_then(|limit| now.checked_add(limit));
        let group = self.group.as_ref().map(JobGroup::id);
        let line = line::Terms { weight, priority: self.priority, deadline, group };
        Ok(Terms { line, group: self.group.clone() })
    }
}
