//! This process as a shard of the queue: opened, kept going through pauses, left.

use std::{future::pending, time::Duration};

use interval_queue::{IntervalQueue, MaxRunning};
use tokio::time::{sleep, timeout};

use crate::{
    args::Shard,
    contact::Contact,
    duration::show,
    exit::{Failure, NOINPUT, TEMPFAIL, say},
    program::Program,
    target::{bounded, look},
};

/// How long the state may take to hear that this process has left. If it does not, the lease ends by itself.
const LEAVE_PATIENCE: Duration = Duration::from_secs(2);
/// About how often a paused queue, or a state that did not answer at first, is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// What becomes of a state that cannot be reached at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstContact {
    MustSucceed,
    /// It is tried again.
    MayFail,
}

impl Shard {
    /// Opens the queue, and sets what the command line says for all.
    pub(crate) async fn open(
        &self,
        program: &Program,
        first: FirstContact,
        contact: &Contact,
    ) -> Result<IntervalQueue, Failure> {
        let label = self.label.clone().unwrap_or_else(|| label(program));
        loop {
            match self.try_open(label.clone(), contact).await {
                Err(failure) if failure.passes && first == FirstContact::MayFail => {
                    contact.failed(failure);
                    sleep(about(ASK_AGAIN)).await;
                }
                opened => return opened,
            }
        }
    }

    async fn try_open(&self, label: String, contact: &Contact) -> Result<IntervalQueue, Failure> {
        let target = &self.target;
        let state = target.state.open().await?;
        let may_change = self.every.is_some() || self.max_running.is_some();
        let before = if may_change { look(&*state, &target.queue).await? } else { None };

        let failing = contact.clone();
        let mut builder = IntervalQueue::builder(target.queue.as_str())
            .label(label)
            .on_error(move |error| failing.failed(Failure::from(error)));
        if let Some(every) = self.every {
            builder = builder.interval(every);
        }
        builder = match self.max_running {
            Some(MaxRunning::AtMost(limit)) => builder.max_running(limit),
            Some(MaxRunning::Unlimited) => builder.unlimited_running(),
            _ => builder,
        };
        let queue =
            bounded(async { Ok(builder.open(contact.watch(state)).await?) }).await.map_err(|failure| {
                let missing = failure.code == NOINPUT && self.every.is_none();
                if missing { self.no_interval() } else { failure }
            })?;
        if let Some(before) = before {
            warn_of_new_settings(&queue, before.record.interval.to_duration(), before.record.max_running);
        }
        Ok(queue)
    }

    fn no_interval(&self) -> Failure {
        let queue = self.target.queue.as_str();
        Failure::new(
            NOINPUT,
            format!("there is no queue {queue:?} here yet: give its interval, for example --every 250ms"),
        )
    }
}

fn warn_of_new_settings(queue: &IntervalQueue, interval: Duration, max_running: Option<u32>) {
    let name = queue.name().as_str();
    if queue.interval() != interval {
        let (before, now) = (show(interval), show(queue.interval()));
        say(&format!("interval of queue {name:?} changed from {before} to {now} for all shards"));
    }
    if queue.max_running() != max_running {
        let limit = |limit: Option<u32>| limit.map_or("none".into(), |limit| limit.to_string());
        let (before, now) = (limit(max_running), limit(queue.max_running()));
        say(&format!("running limit of queue {name:?} changed from {before} to {now} for all shards"));
    }
}

/// A shard goes idle in a pause. This process has nobody else to restart it, so it asks now and then.
pub(crate) async fn tick_through_pauses<T>(queue: &IntervalQueue, contact: &Contact) -> T {
    loop {
        contact.paused().await;
        sleep(about(ASK_AGAIN)).await;
        queue.tick().await;
    }
}

/// Tells the state that this process has left, if it can be told soon.
pub(crate) async fn leave(queue: &IntervalQueue) {
    let _ = timeout(LEAVE_PATIENCE, queue.close()).await;
}

/// The time is over; for ever pending without a limit.
pub(crate) async fn expired(limit: Option<Duration>) -> Duration {
    match limit {
        Some(limit) => sleep(limit).await,
        None => pending().await,
    }
    limit.unwrap_or_default()
}

/// Nothing was started in time.
pub(crate) fn too_late(limit: Duration, contact: &Contact) -> Failure {
    Failure::new(TEMPFAIL, format!("not started within {}: {contact}", show(limit)))
}

/// Three quarters to five quarters of it, so that processes that wait together do not ask together.
fn about(duration: Duration) -> Duration {
    duration.mul_f64(rand::random_range(0.75..1.25))
}

/// What `status` calls this process: `CMD pid N`.
fn label(program: &Program) -> String {
    let printable = |c: char| if c.is_control() { '?' } else { c };
    let mut name: String = program.base_name().chars().map(printable).collect();
    // A label has at most 128 bytes; " pid " and a number take no more than 28.
    while name.len() > 100 {
        name.pop();
    }
    format!("{} pid {}", name, std::process::id()).trim().to_owned()
}
