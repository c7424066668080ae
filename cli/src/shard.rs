//! This process as a shard of the queue: opening it, waiting through pauses, leaving it.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use interval_queue::{Error, IntervalQueue, MaxRunning, OnExisting, Settings, StateErrorKind, WakeUps};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    args::Shard,
    clock::now,
    connection_state::ConnectionState,
    exit::{Failure, NOINPUT, TEMPFAIL, report},
    rate::pace,
    target::{bounded, snapshot},
};
use interval_queue_documents::words::show;

/// The lease ends by itself afterwards.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);
/// Approximate delay before a paused queue, or a store that did not answer, is tried again.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Enough for the round trips to any store, and few enough tickets not to delay other shards.
const TICKET_HORIZON: Duration = Duration::from_millis(500);
const MAX_TICKETS_AHEAD: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstConnection {
    MustSucceed,
    /// Opening is retried.
    MayFail,
}

impl Shard {
    /// With the settings of the command line. The default label is `name` and the process id.
    pub(crate) async fn open(
        &self,
        name: &str,
        first: FirstConnection,
        connection: &ConnectionState,
    ) -> Result<IntervalQueue, Failure> {
        let label = self.label.clone().unwrap_or_else(|| label(name));
        loop {
            match self.try_open(label.clone(), connection).await {
                Err(failure) if failure.passes && first == FirstConnection::MayFail => {
                    connection.failed(&failure);
                    sleep(about(POLL_INTERVAL)).await;
                }
                opened => return opened,
            }
        }
    }

    async fn try_open(&self, label: String, connection: &ConnectionState) -> Result<IntervalQueue, Failure> {
        let target = &self.target;
        let store = target.store.store().await?;
        let may_change = self.overrides && (self.pace.pace().is_some() || self.max_running.is_some());
        let before = if may_change {
            snapshot(&target.store.operators().await?.of(&target.queue)).await?
        } else {
            None
        };

        let mut builder = IntervalQueue::builder(target.queue.as_str())
            .label(label)
            // `tick_through_pauses` does that instead.
            .wake_ups(WakeUps::Off);
        self.pace.rates()?;
        if let Some(pace) = self.pace.pace() {
            builder = builder.rate_limit(pace);
        }
        if self.overrides {
            builder = builder.on_existing(OnExisting::Replace);
        }
        builder = match self.max_running {
            Some(MaxRunning::AtMost(limit)) => builder.max_running(limit),
            Some(MaxRunning::Unlimited) => builder.unlimited_running(),
            _ => builder,
        };
        let queue = bounded(async { Ok(builder.open(&store).await?) }).await.map_err(|failure| {
            let missing = failure.code == NOINPUT && self.pace.pace().is_none();
            if missing { self.no_interval() } else { failure }
        })?;
        connection.observe(&queue);
        if let Some(before) = before {
            warn_of_new_settings(&queue, before.record.settings());
        }
        warn_of_kept_settings(&queue);
        Ok(queue)
    }

    fn no_interval(&self) -> Failure {
        let queue = self.target.queue.as_str();
        let text = format!("there is no queue {queue:?} in this store: give its rate, as in --every 250ms");
        Failure::new(NOINPUT, text)
    }
}

fn warn_of_new_settings(queue: &IntervalQueue, before: Settings) {
    let Settings { rates, max_running } = before;
    let name = queue.name().as_str();
    if queue.rates() != rates {
        let (before, now) = (pace(&rates), pace(&queue.rates()));
        report(&format!("rate of queue {name:?} changed from {before} to {now}, for all processes"));
    }
    if queue.max_running() != max_running {
        let (before, now) = (limit(max_running), limit(queue.max_running()));
        report(&format!("running limit of queue {name:?} changed from {before} to {now}, for all processes"));
    }
}

fn warn_of_kept_settings(queue: &IntervalQueue) {
    let Some(requested) = queue.overruled_settings() else { return };
    let (name, kept) = (queue.name().as_str(), queue.settings());
    if requested.rates != kept.rates {
        let (kept, requested) = (pace(&kept.rates), pace(&requested.rates));
        report(&format!(
            "queue {name:?} keeps its rate, {kept}, not {requested}: --override changes it for all"
        ));
    }
    if requested.max_running != kept.max_running {
        let (kept, requested) = (limit(kept.max_running), limit(requested.max_running));
        report(&format!(
            "queue {name:?} keeps its running limit, {kept}, not {requested}: --override changes it for all"
        ));
    }
}

fn limit(limit: Option<u32>) -> String {
    limit.map_or("none".into(), |limit| limit.to_string())
}

/// An idle shard does not notice the end of a pause by itself.
pub(crate) async fn tick_through_pauses<T>(queue: &IntervalQueue, connection: &ConnectionState) -> T {
    loop {
        connection.paused(true).await;
        sleep(about(POLL_INTERVAL)).await;
        queue.tick().await;
    }
}

/// One ticket for each slot within [`TICKET_HORIZON`], at least one. An available burst counts.
pub(crate) fn tickets_ahead(queue: &IntervalQueue, weight: u32) -> usize {
    queue.starts_within(TICKET_HORIZON, weight, MAX_TICKETS_AHEAD)
}

/// Requests for a ticket that the store refuses are repeated after growing delays.
#[derive(Debug)]
pub(crate) struct Refusals {
    delays: ExponentialBackoff,
    /// No turn is requested before this time. `None`: no request was refused.
    until: Option<Instant>,
}

impl Default for Refusals {
    fn default() -> Self {
        let delays = ExponentialBuilder::new()
            .with_min_delay(Duration::from_millis(100))
            .with_max_delay(Duration::from_secs(5))
            .without_max_times()
            .with_jitter();
        Self { delays: delays.build(), until: None }
    }
}

impl Refusals {
    /// # Errors
    ///
    /// A cause that cannot be fixed while this process waits.
    pub(crate) fn record(&mut self, error: Error, connection: &ConnectionState) -> Result<(), Failure> {
        let can_be_put_right = error.state().is_some_and(|error| {
            use StateErrorKind::{Damaged, Denied, Foreign, Full};
            error.is_retryable() || matches!(error.kind(), Damaged | Denied | Foreign | Full)
        });
        let failure = Failure::from(error);
        if !can_be_put_right {
            return Err(failure);
        }
        connection.failed(&failure);
        let delay = self.delays.next();
        self.until = self.until.or(delay.map(|delay| now() + delay));
        Ok(())
    }

    pub(crate) fn are_waiting(&self) -> bool {
        self.until.is_some()
    }

    /// `None`: now.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.until
    }

    pub(crate) fn retry(&mut self) {
        self.until = None;
    }

    /// The next refusal has the first delay.
    pub(crate) fn granted(&mut self) {
        *self = Self { until: self.until, ..Self::default() };
    }
}

/// Takes at most [`LEAVE_TIMEOUT`].
pub(crate) async fn leave(queue: &IntervalQueue) {
    let _ = timeout(LEAVE_TIMEOUT, queue.close()).await;
}

pub(crate) fn too_late(limit: Duration, connection: &ConnectionState) -> Failure {
    Failure::new(TEMPFAIL, format!("not started within {}: {connection}", show(limit)))
}

/// Jitter of ±25 %, so that waiting processes do not poll at the same time.
fn about(duration: Duration) -> Duration {
    duration.mul_f64(rand::random_range(0.75..1.25))
}

/// `status` shows it: `NAME pid N`.
pub(crate) fn label(name: &str) -> String {
    let printable = |c: char| if c.is_control() { '?' } else { c };
    let mut name: String = name.chars().map(printable).collect();
    // A label has at most 128 bytes; " pid " and a number take at most 28.
    while name.len() > 100 {
        name.pop();
    }
    format!("{} pid {}", name, std::process::id()).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use interval_queue::{DAY, RateLimit, SECOND};

    use super::*;

    /// Returns the tickets ahead before any start, after `starts` of them, and after `later`.
    async fn tickets(pace: RateLimit, starts: u32, later: Duration) -> [usize; 3] {
        let queue = IntervalQueue::builder("api").rate_limit(pace).connect("memory:").await.unwrap();
        let at_first = tickets_ahead(&queue, 1);
        for _ in 0..starts {
            drop(queue.turn().await.unwrap());
        }
        let then = tickets_ahead(&queue, 1);
        sleep(later).await;
        [at_first, then, tickets_ahead(&queue, 1)]
    }

    #[tokio::test(start_paused = true)]
    async fn tickets_ahead_cover_half_a_second_and_the_burst() {
        let second = Duration::from_secs(1);
        assert_eq!(tickets(RateLimit::rate(5).per(SECOND), 3, second).await, [3, 3, 3]);
        assert_eq!(tickets(RateLimit::rate(5).per(SECOND).burst(20), 20, second).await, [22, 3, 7]);
        assert_eq!(tickets(RateLimit::rate(1).per(DAY), 1, second).await, [1, 1, 1]);
        let exhausted = RateLimit::rate(5).per(SECOND).burst(20).and(100).per(DAY);
        assert_eq!(tickets(exhausted, 10, second).await, [10, 1, 1]);
    }
}
