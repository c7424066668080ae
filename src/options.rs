//! Options of a job.

use std::time::{Duration, Instant};

use interval_queue_contract::{InvalidInput, MAX_INTERVAL, Micros, check_weight};

use crate::{JobGroup, line, shard::Terms};

/// Options of a job.
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
/// // Starts before the waiting pages, and is rejected if it would wait more than three seconds.
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
    /// The default options.
    pub const fn new() -> Self {
        Self { weight: None, priority: 0, start_within: None, timeout: None, group: None }
    }

    /// The intervals that the job takes: the next slot comes that many intervals after its own.
    /// Default: 1. At most 1,000,000, and 366 days of the queue's intervals.
    ///
    /// Without a burst only the next slot is later, so a heavy job waits no longer than a light one.
    /// With a burst it waits until its weight is available at once. If it overtakes lighter jobs,
    /// the slots granted to them are lost: those within the lead, usually a few milliseconds. If it
    /// is cancelled within the lead, its intervals pass unused.
    pub const fn weight(mut self, weight: u32) -> Self {
        self.weight = Some(weight);
        self
    }

    /// Jobs with a higher priority start first, equal ones in the order of adding. Default: 0.
    ///
    /// The priority orders the jobs of one shard until they start: a new job takes the shard's
    /// first ticket, and the others move back by one. Between shards only tickets count. Low
    /// priorities wait while higher ones exist.
    /// [`JobHandle::set_priority`](crate::JobHandle::set_priority) changes it later.
    pub const fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// The latest start, as a delay after the call. Default: no limit. Zero: now or never, where
    /// now allows for a reply of the store, at least 10 ms.
    ///
    /// If its estimated start is later, the job is rejected with
    /// [`TooLate`](crate::ErrorKind::TooLate) before it takes a ticket: by the call if its shard
    /// has seen the record within a second, otherwise through its handle, after a read. The
    /// estimate counts every earlier ticket as used. An accepted job that a pause or other jobs
    /// delay too long is dropped with the same error. Jobs
    /// [added together](crate::IntervalQueue::jobs) are rejected one by one, through their handles.
    /// With retries, only the first start is limited.
    pub const fn start_within(mut self, limit: Duration) -> Self {
        self.start_within = Some(limit);
        self
    }

    /// The longest run. Then the job is dropped at its next await, and its handle returns
    /// [`TimedOut`](crate::ErrorKind::TimedOut). Default: no limit. With retries, it limits each
    /// attempt.
    pub const fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// The group that cancels the job. Default: none.
    pub fn group(mut self, group: &JobGroup) -> Self {
        self.group = Some(group.clone());
        self
    }

    /// A timeout is rejected: code that runs in place cannot be aborted.
    pub(crate) fn check_turn(&self) -> Result<(), InvalidInput> {
        match self.timeout {
            Some(limit) => Err(InvalidInput::new(format!(
                "timeout {limit:?} of a turn: put what you run there into a timeout of your own"
            ))),
            None => Ok(()),
        }
    }

    /// `grace` replaces a zero `start_within`.
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
        // A deadline beyond the range of the clock is no limit.
        let deadline = within.and_then(|limit| now.checked_add(limit));
        let group = self.group.as_ref().map(JobGroup::id);
        let line = line::Terms { weight, priority: self.priority, deadline, group };
        Ok(Terms { line, group: self.group.clone() })
    }
}
