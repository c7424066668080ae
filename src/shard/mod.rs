//! A shard: its line behind a lock, the way to wake its driver, and the place that a running job occupies.

mod admission;
mod group;
mod job;
mod room;
mod running;
mod taken;

use std::{
    fmt,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::{
    FutureExt,
    future::{AbortHandle, BoxFuture},
};
use interval_queue_contract::{
    Change, Command, QueueName, Reply, Settings, SharedState, StateError, StateErrorKind,
};
use tokio::sync::Notify;

pub use self::group::JobGroup;
pub(crate) use self::{
    admission::{Accepted, Entry, Place},
    job::{Arriving, Job, Line, Start, Started, Starting, Terms, Waiting, Withdrawn, refuse},
    room::Room,
    running::Running,
    taken::{Caller, Taken},
};
use crate::{
    error::Error,
    host::{Host, timeout},
    line::{COMMAND_TIMEOUT, GroupId, JobId, Lead, retries},
    telemetry::{LineGuard, Refused, Sent, Telemetry},
    until::until,
    wake_ups::WakeUps,
};

/// For how long a call tries again what has failed. A server that restarts is often back by then, and who
/// called still waits.
pub(crate) const INSISTENCE: Duration = Duration::from_secs(2);

/// The task of a shard, alive only while jobs wait or run.
pub(crate) type Driver = fn(Arc<Shard>) -> BoxFuture<'static, ()>;

/// Is told of every command that failed.
#[derive(Clone)]
pub(crate) struct ErrorHook(pub(crate) Arc<dyn Fn(&Error) + Send + Sync>);

impl fmt::Debug for ErrorHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ErrorHook")
    }
}

pub(crate) struct Shard {
    pub(crate) queue: QueueName,
    pub(crate) state: Arc<dyn SharedState>,
    pub(crate) on_error: Option<ErrorHook>,
    /// What it was opened with, if other settings were kept.
    pub(crate) overruled: Option<Settings>,
    /// None: any number of jobs may wait.
    pub(crate) room: Option<Room>,
    driver: Driver,
    line: Mutex<Line>,
    lead: Mutex<Lead>,
    /// How long the last choice of a job took that is chosen before its slot.
    choice_took: Mutex<Duration>,
    /// Wakes the driver.
    pub(crate) woken: Notify,
    /// Tells that the state answered or failed to.
    pub(crate) answered: Notify,
    /// Tells that the queue was found paused or its state lost.
    pub(crate) stopped: Notify,
    /// Tells that the shard may have become idle.
    pub(crate) settled: Notify,
    /// Tells that the shard was shut down.
    pub(crate) ended: Notify,
    pub(crate) wake_ups: WakeUps,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) telemetry: Telemetry,
}

impl Shard {
    pub(crate) fn new(
        telemetry: Telemetry,
        state: Arc<dyn SharedState>,
        host: Arc<dyn Host>,
        driver: Driver,
        line: Line,
    ) -> Self {
        Self {
            queue: telemetry.queue.clone(),
            state,
            on_error: None,
            overruled: None,
            room: None,
            driver,
            line: Mutex::new(line),
            lead: Mutex::default(),
            choice_took: Mutex::default(),
            woken: Notify::new(),
            answered: Notify::new(),
            stopped: Notify::new(),
            settled: Notify::new(),
            ended: Notify::new(),
            wake_ups: WakeUps::On,
            host,
            telemetry,
        }
    }

    /// The line. Nothing that belongs to a user runs, is dropped or panics while it is locked.
    pub(crate) fn line(&self) -> LineGuard<'_, Job, Caller, AbortHandle> {
        LineGuard::new(self.line.lock().unwrap_or_else(PoisonError::into_inner), &self.telemetry)
    }

    pub(crate) fn lead(&self) -> MutexGuard<'_, Lead> {
        self.lead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn choice_took(&self) -> MutexGuard<'_, Duration> {
        self.choice_took.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the driver look at the line; starts one if none is alive, where the queue was opened, or here if
    /// that place has ended.
    pub(crate) fn wake(self: &Arc<Self>) {
        for moved in [false, true] {
            {
                let mut line = self.line();
                if line.driving {
                    drop(line);
                    self.woken.notify_one();
                    return;
                }
                (line.driving, line.orphaned) = (true, false);
                line.forget_old_loss(self.host.now());
            }
            self.host.spawn((self.driver)(self.clone()));
            // A place that has ended drops what it is given, and the driver then says that it is gone.
            if !self.line().orphaned || moved || !self.host.adopt() {
                return;
            }
        }
    }

    /// Asks for the next slot now, if jobs wait.
    pub(crate) fn start(self: &Arc<Self>) {
        let waits = {
            let mut line = self.line();
            line.contact.nudge(self.host.now());
            !line.backlog.is_empty() || !line.running.is_empty()
        };
        if waits {
            self.wake();
        }
    }

    /// Hands the line over if its driver ended with its runtime.
    pub(crate) fn adopt(self: &Arc<Self>) {
        if self.line().orphaned {
            self.wake();
        }
    }

    /// Sends one command. A backend that panics has failed.
    pub(crate) async fn apply(&self, command: Command) -> Result<Reply, StateError> {
        let applied = AssertUnwindSafe(async { self.state.apply(&self.queue, command).await }).catch_unwind();
        applied.await.unwrap_or_else(|_| {
            Err(StateError::new(StateErrorKind::Unreachable, "the state backend panicked"))
        })
    }

    /// The same, bounded in time.
    pub(crate) async fn command(&self, command: Command) -> Result<Reply, StateError> {
        let (sent, sort) = (self.host.now(), Sent::of(&command));
        let applied = timeout(&self.host, COMMAND_TIMEOUT, self.apply(command)).await;
        let reply = applied.unwrap_or_else(|| Err(timed_out()));
        self.telemetry.meter.replied(sort, self.host.now().saturating_duration_since(sent), &reply);
        reply
    }

    /// Sends a command that may be done twice. What failed and may pass by itself is tried again, such as
    /// over a connection that died while nobody used it. The reply, and when it was asked for.
    pub(crate) async fn insist(&self, command: Command) -> Result<(Reply, Instant), StateError> {
        let last = self.host.now() + INSISTENCE;
        let mut delays = retries(INSISTENCE / 4, self.host.random());
        loop {
            let sent = self.host.now();
            let error = match self.command(command.clone()).await {
                Err(error) if error.is_retryable() => error,
                reply => return Ok((reply?, sent)),
            };
            let again = self.host.now() + delays.next().unwrap_or(INSISTENCE);
            if again > last {
                return Err(error);
            }
            self.host.sleep_until(again).await;
        }
    }

    /// Changes something for all shards and remembers it. Each change is absolute, or the longer of two
    /// holds: done twice, it is done once.
    pub(crate) async fn change(&self, change: Change) -> Result<(), Error> {
        let memory = self.line().contact.told();
        let (reply, _) = self.insist(Command::Change(change, memory)).await?;
        self.learn(reply)
    }

    /// The same for a change that is of use only now.
    pub(crate) async fn change_now(&self, change: Change) -> Result<(), Error> {
        let memory = self.line().contact.told();
        let reply = self.command(Command::Change(change, memory)).await?;
        self.learn(reply)
    }

    fn learn(&self, reply: Reply) -> Result<(), Error> {
        let changed = reply.changed()?;
        let settling = {
            let now = self.host.now();
            self.line().learn(&changed, now)
        };
        self.telemetry.rejoined(settling);
        Ok(())
    }

    /// Takes no new job from now on, nor from those who wait for room.
    pub(crate) fn close(&self) {
        self.line().closed = true;
        if let Some(room) = &self.room {
            room.free.close();
        }
    }

    /// Waits until nothing waits or runs and the driver has ended.
    pub(crate) async fn settle(&self) {
        until(&self.settled, || {
            let line = self.line();
            line.is_idle() && !line.driving
        })
        .await;
    }

    /// Takes a job out that has not started, and gives its place up.
    pub(crate) fn withdraw(self: &Arc<Self>, id: JobId) -> Option<Withdrawn> {
        let mut withdrawn = self.line().withdraw(id)?;
        withdrawn.job.payload.leave_room();
        self.wake();
        Some(withdrawn)
    }

    /// Cancels the jobs of a group that have not started. How many they were.
    fn cancel_group(self: &Arc<Self>, group: GroupId) -> usize {
        let withdrawn = self.line().withdraw_group(group);
        let count = withdrawn.len();
        withdrawn.into_iter().for_each(|job| refuse(job, Error::cancelled()));
        if count > 0 {
            self.telemetry.meter.refused(Refused::Cancelled, count);
            self.wake();
        }
        count
    }

    /// Tells jobs that need slots of other queues, too, that this one brings none for now.
    pub(crate) fn tell_stopped(&self) {
        let stopped = {
            let line = self.line();
            line.contact.memory.paused || line.contact.failing.is_some()
        };
        if stopped {
            self.stopped.notify_waiters();
        }
    }

    /// Tells a failed command to whom it may concern.
    pub(crate) fn report(&self, error: StateError) {
        self.telemetry.state_failed(&error);
        self.tell_hook(|| Error::from(error));
    }

    fn tell_hook(&self, error: impl FnOnce() -> Error) {
        if let Some(hook) = self.on_error.clone() {
            let error = error();
            // The hook is the application's: it may block or panic, and the driver must not.
            self.host.spawn_blocking(Box::new(move || (hook.0)(&error)));
        }
    }

    /// Refuses a job that would start at the quoted instant, or could not start in time.
    pub(crate) fn refuse_too_late(&self, mut late: Withdrawn, quote: Option<Instant>, now: Instant) -> Error {
        let origin = late.job.payload.take_origin();
        self.telemetry.give_up(late.job.weight, late.job.priority(), &origin, now);
        let deadline = late.job.deadline();
        let error = quote.zip(deadline).map_or_else(Error::started_too_late, |(quote, deadline)| {
            let too_late_by = quote.saturating_duration_since(deadline);
            Error::quoted_too_late(quote.saturating_duration_since(now), too_late_by)
        });
        refuse(late, error.again());
        error
    }

    /// The same for a job whose `add` has returned: perhaps nobody holds its handle.
    pub(crate) fn give_up(&self, late: Withdrawn, quote: Option<Instant>, now: Instant) {
        let error = self.refuse_too_late(late, quote, now);
        self.tell_hook(|| error);
    }
}

/// A command took longer than any may.
pub(crate) fn timed_out() -> StateError {
    let text = format!("the state did not answer within {COMMAND_TIMEOUT:?}");
    StateError::new(StateErrorKind::TimedOut, text)
}

impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shard")
            .field("queue", &self.queue)
            .field("id", &self.line().identity.shard)
            .finish_non_exhaustive()
    }
}
