//! A shard: its line under a lock, the wake-up of its driver, its running jobs.

mod admission;
mod capacity;
mod group;
mod running;
mod shard_job;
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
use tokio::sync::{Notify, watch};

pub use self::group::JobGroup;
pub(crate) use self::{
    admission::{Accepted, Entry, WithdrawGuard},
    capacity::Capacity,
    running::Running,
    shard_job::{Arriving, Job, Line, Start, Started, Starting, Terms, Waiting, Withdrawn, refuse},
    taken::{Caller, Taken},
};
use crate::{
    connection::Connection,
    error::Error,
    host::{Host, timeout},
    line::{COMMAND_TIMEOUT, GroupId, JobId, Lead, retries},
    telemetry::{LineGuard, Refused, Sent, Telemetry},
    until::until,
    wake_ups::WakeUps,
};

/// A restarting server is often back by then, and the caller still waits.
pub(crate) const RETRY_TIMEOUT: Duration = Duration::from_secs(2);

/// Alive only while jobs wait or run.
pub(crate) type Driver = fn(Arc<Shard>) -> BoxFuture<'static, ()>;

/// Called for every failed command.
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
    /// The requested settings, if others were kept.
    pub(crate) overruled: Option<Settings>,
    /// The connection as of the last poll.
    pub(crate) connection: watch::Sender<Connection>,
    /// `None`: unlimited.
    pub(crate) capacity: Option<Capacity>,
    driver: Driver,
    line: Mutex<Line>,
    lead: Mutex<Lead>,
    choice_took: Mutex<Duration>,
    pub(crate) woken: Notify,
    /// Notified when the store has replied or failed.
    pub(crate) answered: Notify,
    /// Notified when the queue is found paused or its store lost.
    pub(crate) stopped: Notify,
    /// Notified when the shard may be idle.
    pub(crate) idle: Notify,
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
            connection: watch::Sender::default(),
            capacity: None,
            driver,
            line: Mutex::new(line),
            lead: Mutex::default(),
            choice_took: Mutex::default(),
            woken: Notify::new(),
            answered: Notify::new(),
            stopped: Notify::new(),
            idle: Notify::new(),
            ended: Notify::new(),
            wake_ups: WakeUps::On,
            host,
            telemetry,
        }
    }

    /// Under this lock no user code runs, panics or is dropped.
    pub(crate) fn line(&self) -> LineGuard<'_, Job, Caller, AbortHandle> {
        LineGuard::new(self.line.lock().unwrap_or_else(PoisonError::into_inner), &self.telemetry)
    }

    pub(crate) fn lead(&self) -> MutexGuard<'_, Lead> {
        self.lead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn choice_took(&self) -> MutexGuard<'_, Duration> {
        self.choice_took.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a driver if none is alive, on the runtime where the queue was opened, or the caller's
    /// if that has ended.
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
            // An ended runtime drops the driver, which then sets `orphaned`.
            if !self.line().orphaned || moved || !self.host.adopt() {
                return;
            }
        }
    }

    /// Requests the next slot now, if jobs wait.
    pub(crate) fn start(self: &Arc<Self>) {
        let waits = {
            let mut line = self.line();
            line.connection.request_now(self.host.now());
            !line.backlog.is_empty() || !line.running.is_empty()
        };
        if waits {
            self.wake();
        }
    }

    pub(crate) fn adopt(self: &Arc<Self>) {
        if self.line().orphaned {
            self.wake();
        }
    }

    /// A panic of the backend is an error.
    pub(crate) async fn apply(&self, command: Command) -> Result<Reply, StateError> {
        let applied = AssertUnwindSafe(async { self.state.apply(&self.queue, command).await }).catch_unwind();
        applied.await.unwrap_or_else(|_| {
            Err(StateError::new(StateErrorKind::Unreachable, "the store's backend panicked"))
        })
    }

    pub(crate) async fn command(&self, command: Command) -> Result<Reply, StateError> {
        let (sent, sort) = (self.host.now(), Sent::of(&command));
        let applied = timeout(&self.host, COMMAND_TIMEOUT, self.apply(command)).await;
        let reply = applied.unwrap_or_else(|| Err(timed_out()));
        self.telemetry.meter.replied(sort, self.host.now().saturating_duration_since(sent), &reply);
        reply
    }

    /// Only for idempotent commands. Retries transient errors, such as a connection that died while
    /// idle. Returns when the answered command was sent.
    pub(crate) async fn command_with_retries(
        &self,
        command: Command,
    ) -> Result<(Reply, Instant), StateError> {
        let last = self.host.now() + RETRY_TIMEOUT;
        let mut delays = retries(RETRY_TIMEOUT / 4, self.host.random());
        loop {
            let sent = self.host.now();
            let error = match self.command(command.clone()).await {
                Err(error) if error.is_retryable() => error,
                reply => return Ok((reply?, sent)),
            };
            let again = self.host.now() + delays.next().unwrap_or(RETRY_TIMEOUT);
            if again > last {
                return Err(error);
            }
            self.host.sleep_until(again).await;
        }
    }

    /// A retry is harmless: each change is absolute, or the longer of two holds.
    pub(crate) async fn change(&self, change: Change) -> Result<(), Error> {
        let memory = self.line().connection.reported_memory();
        let (reply, _) = self.command_with_retries(Command::Change(change, memory)).await?;
        self.learn(reply)
    }

    /// Without retries, for a change that is useful only now.
    pub(crate) async fn change_now(&self, change: Change) -> Result<(), Error> {
        let memory = self.line().connection.reported_memory();
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

    /// Also rejects jobs that wait for a permit.
    pub(crate) fn close(&self) {
        self.line().closed = true;
        if let Some(capacity) = &self.capacity {
            capacity.free.close();
        }
    }

    pub(crate) async fn wait_idle(&self) {
        until(&self.idle, || {
            let line = self.line();
            line.is_idle() && !line.driving
        })
        .await;
    }

    pub(crate) fn withdraw(self: &Arc<Self>, id: JobId) -> Option<Withdrawn> {
        let mut withdrawn = self.line().withdraw(id)?;
        withdrawn.job.payload.release_permit();
        self.wake();
        Some(withdrawn)
    }

    /// Returns the number of jobs that had not started.
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

    /// Joint jobs learn that this queue grants no slot for now.
    pub(crate) fn notify_stopped(&self) {
        let stopped = {
            let line = self.line();
            line.connection.memory.paused || line.connection.failing.is_some()
        };
        if stopped {
            self.stopped.notify_waiters();
        }
    }

    pub(crate) fn report(&self, error: StateError) {
        self.telemetry.state_failed(&error);
        self.call_hook(|| Error::from(error));
    }

    fn call_hook(&self, error: impl FnOnce() -> Error) {
        if let Some(hook) = self.on_error.clone() {
            let error = error();
            // User code may block or panic, and the driver must not.
            self.host.spawn_blocking(Box::new(move || (hook.0)(&error)));
        }
    }

    /// The job would start at `estimate`, or could not start in time.
    pub(crate) fn refuse_too_late(
        &self,
        mut late: Withdrawn,
        estimate: Option<Instant>,
        now: Instant,
    ) -> Error {
        let origin = late.job.payload.take_origin();
        self.telemetry.give_up(late.job.weight, late.job.priority(), &origin, now);
        let deadline = late.job.deadline();
        let error = estimate.zip(deadline).map_or_else(Error::started_too_late, |(estimate, deadline)| {
            let too_late_by = estimate.saturating_duration_since(deadline);
            Error::estimated_too_late(estimate.saturating_duration_since(now), too_late_by)
        });
        refuse(late, error.again());
        error
    }

    /// Also calls the hook: after `add` has returned, nobody may hold the job's handle.
    pub(crate) fn give_up(&self, late: Withdrawn, estimate: Option<Instant>, now: Instant) {
        let error = self.refuse_too_late(late, estimate, now);
        self.call_hook(|| error);
    }
}

pub(crate) fn timed_out() -> StateError {
    let text = format!("the store did not answer within {COMMAND_TIMEOUT:?}");
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
