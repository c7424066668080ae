//! Control of a queue: pause, hold, rates and limits for all shards; wake-up and status of one
//! shard.

use std::time::Duration;

use interval_queue_contract::{Change, Command, MaxRunning, Micros, Reply};

use crate::{IntervalQueue, RateLimit, Reason, Status, error::Error, until::until};

/// The result of [`IntervalQueue::tick`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tick {
    /// Jobs of this shard that wait for their start.
    pub waiting: usize,
    /// Whether the queue is paused, as last seen by this shard.
    pub paused: bool,
    /// Whether the store is unreachable. The shard keeps retrying; meanwhile jobs wait, or start
    /// alone if the queue was opened [that way](crate::WhenStateIsLost).
    pub state_unreachable: bool,
}

impl IntervalQueue {
    /// Stops all starts on all shards. Waiting jobs keep waiting, running jobs go on. Starts
    /// already granted, at most [one second](crate::MAX_LEAD) ahead, still happen.
    ///
    /// # Errors
    ///
    /// [`State`](crate::ErrorKind::State): the change may not have been made; see
    /// [`StateErrorKind::TimedOut`](crate::StateErrorKind::TimedOut). Retryable errors are returned
    /// after two seconds of retries, others at once. A request without a reply fails after ten
    /// seconds.
    pub async fn pause(&self) -> Result<(), Error> {
        self.shard.change(Change::Pause).await
    }

    /// Ends a pause for all shards and starts this one. Other shards with waiting jobs notice it as
    /// [`WakeUps`](crate::WakeUps) describes, usually at once.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause).
    pub async fn resume(&self) -> Result<(), Error> {
        self.shard.change(Change::Resume).await?;
        self.start();
        Ok(())
    }

    /// Stops all starts on all shards for this long, such as for a `Retry-After`: at most 366 days.
    /// A longer hold in force stays.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause), and [`Invalid`](crate::ErrorKind::Invalid) for more.
    pub async fn hold(&self, duration: Duration) -> Result<(), Error> {
        self.shard.change(Change::Hold(Micros::from_duration(duration))).await
    }

    /// Clears the pause, the hold, reservations in the far future and the shards in the record.
    /// Tickets and settings stay; no job is lost. Undoes a hold or weight given by mistake.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause).
    pub async fn reset(&self) -> Result<(), Error> {
        self.shard.change(Change::Reset).await?;
        self.start();
        Ok(())
    }

    /// Sets one interval for all shards: 1 µs to 366 days. A longer interval holds at once. A shard
    /// whose slot is more than two seconds away notices a shorter one as it notices
    /// [`resume`](Self::resume).
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause), and [`Invalid`](crate::ErrorKind::Invalid).
    pub async fn set_interval(&self, interval: Duration) -> Result<(), Error> {
        self.set_rate_limit(interval).await
    }

    /// Sets the rates for all shards. Slots used under the old rates count: the queue owes as many
    /// intervals of a new rate as it owed slots, up to the new burst.
    ///
    /// # Errors
    ///
    /// As [`set_interval`](Self::set_interval), and [`Invalid`](crate::ErrorKind::Invalid) for an
    /// invalid rate limit.
    pub async fn set_rate_limit(&self, limit: impl Into<RateLimit>) -> Result<(), Error> {
        let (rates, implied) = limit.into().resolve()?;
        implied.into_iter().for_each(|(rate, by)| self.shard.telemetry.implied(rate, by));
        self.shard.change(Change::Set { rates: Some(rates), max_running: MaxRunning::Keep }).await?;
        self.start();
        Ok(())
    }

    /// Sets the limit of running jobs for all shards. The record counts jobs that already run
    /// within half a lease.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause), and [`Invalid`](crate::ErrorKind::Invalid) for zero.
    pub async fn set_max_running(&self, max_running: MaxRunning) -> Result<(), Error> {
        self.shard.change(Change::Set { rates: None, max_running }).await?;
        self.start();
        Ok(())
    }

    /// Makes this shard poll for its next slot now, such as after a pause with wake-ups off. Does
    /// nothing if no jobs wait. Safe to call at any time, as often as a person or cron would.
    pub fn start(&self) {
        self.shard.start();
    }

    /// As [`start`](Self::start), and waits for the store's reply, for a cron job, a signal or a
    /// health check.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the shard still polls.
    pub async fn tick(&self) -> Tick {
        let asked = {
            let mut line = self.shard.line();
            line.connection.request_now(self.shard.host.now());
            line.connection.sequence
        };
        self.shard.wake();
        until(&self.shard.answered, || {
            let line = self.shard.line();
            line.connection.answered > asked || !line.has_requests() || !line.driving
        })
        .await;
        let line = self.shard.line();
        Tick {
            waiting: line.backlog.len(),
            paused: line.connection.memory.paused,
            state_unreachable: line.connection.failing.is_some(),
        }
    }

    /// The queue's status and why its next start waits. Reads the record and changes nothing.
    /// Retries like [`pause`](Self::pause), unless this shard has work and already knows that the
    /// store is unreachable.
    pub async fn status(&self) -> Status {
        let is_lost = {
            let line = self.shard.line();
            line.driving && line.connection.failing.is_some()
        };
        let reply = if is_lost {
            self.shard.command(Command::Read).await
        } else {
            self.shard.command_with_retries(Command::Read).await.map(|(reply, _)| reply)
        };
        let shared = reply.and_then(Reply::read);
        let overruled = self.overruled_settings();
        let line = self.shard.line();
        let since = line
            .connection
            .failing
            .as_ref()
            .map(|failing| self.shard.host.now().saturating_duration_since(failing.since));
        let (shared, reason) = match shared {
            Ok(Some(snapshot)) => {
                let reason = Reason::Start(snapshot.start_status());
                (Some(snapshot), reason)
            }
            Ok(None) => (None, Reason::Gone),
            Err(error) => {
                let since = since.unwrap_or_default();
                let alone = line.runs_alone(self.shard.host.now()).map(|share| share.pace);
                (None, Reason::StateUnreachable { since, error: error.to_string(), alone })
            }
        };
        Status {
            queue: self.shard.queue.clone(),
            shard: line.identity.shard.clone(),
            waiting: line.backlog.len(),
            running: line.running.len(),
            closed: line.closed,
            overruled,
            reason,
            shared,
        }
    }
}
