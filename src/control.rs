//! What acts on all shards, and what wakes or looks at one.

use std::time::Duration;

use interval_queue_contract::{Change, Command, MaxRunning, Micros, Reply};

use crate::{IntervalQueue, Pace, Reason, Status, error::Error, until::until};

/// What [`IntervalQueue::tick`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tick {
    /// How many jobs of this shard wait for their start.
    pub waiting: usize,
    /// Whether the queue is paused, as far as this shard knows.
    pub paused: bool,
    /// Whether the state does not answer. It is asked again and again; meanwhile the jobs wait, or start
    /// alone if the queue was opened [so](crate::WhenStateIsLost).
    pub state_unreachable: bool,
}

impl IntervalQueue {
    /// Stops all starts on all shards. Jobs keep waiting; running ones go on. Starts that were granted
    /// before, at most [one second](crate::MAX_LEAD) ahead, still happen.
    ///
    /// # Errors
    ///
    /// [`State`](crate::ErrorKind::State): the change may not have been made; see
    /// [`StateErrorKind::TimedOut`](crate::StateErrorKind::TimedOut). A failure that may pass by itself is
    /// told only after trying again for two seconds did not help; a state that does not answer at all is
    /// given up ten seconds after it was last asked. Any other failure is told at once.
    pub async fn pause(&self) -> Result<(), Error> {
        self.shard.change(Change::Pause).await
    }

    /// Ends a pause for all shards and starts this one. Others with jobs waiting hear of it, as a rule at once
    /// and where the state cannot tell within two seconds or so; with
    /// [wake-ups](crate::Builder::wake_ups) off they start with their next [`add`](Self::add),
    /// [`start`](Self::start) or [`tick`](Self::tick).
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause).
    pub async fn resume(&self) -> Result<(), Error> {
        self.shard.change(Change::Resume).await?;
        self.start();
        Ok(())
    }

    /// Makes no shard start anything for this long, at most 366 days; a longer hold that is in force stays.
    /// For a `Retry-After`, say.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause), and [`Invalid`](crate::ErrorKind::Invalid) for a longer hold.
    pub async fn hold(&self, duration: Duration) -> Result<(), Error> {
        self.shard.change(Change::Hold(Micros::from_duration(duration))).await
    }

    /// Forgets pause, hold, reservations in the far future and the shards that the record knows, for all
    /// shards. Tickets and settings stay, and no job is lost. The way out of a hold or a weight that was
    /// given by mistake.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause).
    pub async fn reset(&self) -> Result<(), Error> {
        self.shard.change(Change::Reset).await?;
        self.start();
        Ok(())
    }

    /// Changes the interval for all shards: 1 µs to 366 days. A longer one holds at once. A shard that waits for
    /// a slot more than two seconds away hears of a shorter one as of the end of a pause, see
    /// [`wake_ups`](crate::Builder::wake_ups).
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause), and [`Invalid`](crate::ErrorKind::Invalid).
    pub async fn set_interval(&self, interval: Duration) -> Result<(), Error> {
        self.set_pace(interval).await
    }

    /// Changes for all shards how fast the queue may be. What was started by the old rates counts for the new
    /// ones: so many of their intervals as slots are owed, at most their bursts.
    ///
    /// # Errors
    ///
    /// As [`set_interval`](Self::set_interval), and [`Invalid`](crate::ErrorKind::Invalid) for a pace that
    /// cannot be.
    pub async fn set_pace(&self, pace: impl Into<Pace>) -> Result<(), Error> {
        let (rates, implied) = pace.into().resolve()?;
        implied.into_iter().for_each(|(rate, by)| self.shard.telemetry.implied(rate, by));
        self.shard.change(Change::Set { rates: Some(rates), max_running: MaxRunning::Keep }).await?;
        self.start();
        Ok(())
    }

    /// Changes for all shards how many jobs may run at once. Jobs that run already are counted as far as the
    /// record knows of them: at the latest half a lease later.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause), and [`Invalid`](crate::ErrorKind::Invalid) for zero.
    pub async fn set_max_running(&self, max_running: MaxRunning) -> Result<(), Error> {
        self.shard.change(Change::Set { rates: None, max_running }).await?;
        self.start();
        Ok(())
    }

    /// Makes this shard ask for its next slot now: the nudge for a shard that has gone idle in a pause. Does
    /// nothing if no jobs wait. Safe to call at any time and any rate a person or cron would.
    pub fn start(&self) {
        self.shard.start();
    }

    /// As [`start`](Self::start), and waits until the state has answered: for a cron job, a signal or a
    /// health check.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the nudge has been given all the same.
    pub async fn tick(&self) -> Tick {
        let asked = {
            let mut line = self.shard.line();
            line.contact.nudge(self.shard.host.now());
            line.contact.sequence
        };
        self.shard.wake();
        until(&self.shard.answered, || {
            let line = self.shard.line();
            line.contact.answered > asked || !line.has_questions() || !line.driving
        })
        .await;
        let line = self.shard.line();
        Tick {
            waiting: line.backlog.len(),
            paused: line.contact.memory.paused,
            state_unreachable: line.contact.failing.is_some(),
        }
    }

    /// How the queue stands and what its next start waits for. Reads the record and changes nothing. A state
    /// that does not answer is asked for as long as by [`pause`](Self::pause), unless this shard has work and
    /// so knows that it is lost.
    pub async fn status(&self) -> Status {
        let is_lost = {
            let line = self.shard.line();
            line.driving && line.contact.failing.is_some()
        };
        let reply = if is_lost {
            self.shard.command(Command::Read).await
        } else {
            self.shard.insist(Command::Read).await.map(|(reply, _)| reply)
        };
        let shared = reply.and_then(Reply::read);
        let overruled = self.overruled_settings();
        let line = self.shard.line();
        let since = line
            .contact
            .failing
            .as_ref()
            .map(|failing| self.shard.host.now().saturating_duration_since(failing.since));
        let (shared, reason) = match shared {
            Ok(Some(snapshot)) => {
                let reason = Reason::Standing(snapshot.standing());
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
