//! A shard: its line behind a lock, the way to wake its driver, and the place that a running job occupies.

use std::{
    fmt,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{FutureExt, channel::oneshot, future::AbortHandle};
use interval_queue_contract::{
    Change, Command, QueueName, Reply, SharedState, StateError, StateErrorKind, Ticket,
};
use tokio::sync::Notify;

use crate::{
    clock::Lead,
    driver::{self, Driving},
    error::Error,
    host::{Host, timeout},
    job::dispose,
    line::{JobId, Line, Waiting},
};

/// The longest that a command may take. A backend should give up earlier; one that hangs cannot hang the shard.
pub(crate) const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// Is told of every command that failed.
pub(crate) type ErrorHook = Arc<dyn Fn(&Error) + Send + Sync>;

pub(crate) struct Shard {
    pub(crate) queue: QueueName,
    pub(crate) state: Arc<dyn SharedState>,
    pub(crate) on_error: Option<ErrorHook>,
    line: Mutex<Line>,
    lead: Mutex<Lead>,
    /// Wakes the driver.
    pub(crate) woken: Notify,
    /// Tells that the state answered or failed to.
    pub(crate) answered: Notify,
    /// Tells that the shard may have become idle.
    pub(crate) settled: Notify,
    /// Tells that the shard was shut down.
    pub(crate) ended: Notify,
    pub(crate) host: Arc<dyn Host>,
}

impl Shard {
    pub(crate) fn new(
        queue: QueueName,
        state: Arc<dyn SharedState>,
        on_error: Option<ErrorHook>,
        line: Line,
        host: Arc<dyn Host>,
    ) -> Self {
        Self {
            queue,
            state,
            on_error,
            line: Mutex::new(line),
            lead: Mutex::default(),
            woken: Notify::new(),
            answered: Notify::new(),
            settled: Notify::new(),
            ended: Notify::new(),
            host,
        }
    }

    /// The line. Nothing that belongs to a user runs, is dropped or panics while it is locked.
    pub(crate) fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lead(&self) -> MutexGuard<'_, Lead> {
        self.lead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the driver look at the line; starts one if none is alive, where the queue was opened, or here if that place
    /// has ended.
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
            self.host.spawn(Box::pin(driver::drive(Driving::new(self.clone()))));
            // A place that has ended drops what it is given, and the driver then says that it is gone.
            if !self.line().orphaned || moved || !self.host.adopt() {
                return;
            }
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
        let applied = timeout(&self.host, COMMAND_TIMEOUT, self.apply(command)).await;
        applied.unwrap_or_else(|| Err(timed_out()))
    }

    /// Changes something for all shards and remembers it.
    pub(crate) async fn change(&self, change: Change) -> Result<(), Error> {
        let memory = self.line().memory;
        let changed = self.command(Command::Change(change, memory)).await?.changed()?;
        let settling = {
            let mut line = self.line();
            line.memory.learn(changed.memory);
            line.rejoin(self.host.now())
        };
        self.tell_rejoined(settling);
        Ok(())
    }

    /// Says that the shard does not run alone any more, if it may have done so.
    pub(crate) fn tell_rejoined(&self, settling: Option<Duration>) {
        if let Some(settling) = settling {
            tracing::info!(queue = %self.queue, ?settling, "rejoined: keeps to its share of the rate a little longer");
        }
    }

    /// Adds a job and waits for its ticket. Dropping the future, or the place it gives, withdraws the job.
    /// A closed queue takes no new job, but the next attempt of one that it accepted.
    pub(crate) async fn enqueue(
        self: &Arc<Self>,
        job: Waiting,
        what: Entry,
    ) -> Result<(Place, Ticket), Error> {
        let (sender, taken) = oneshot::channel();
        let id = {
            let mut line = self.line();
            if line.shut_down || (line.closed && what == Entry::New) {
                drop(line);
                return Err(Error::closed());
            }
            line.arrive(job, sender, self.host.now())
        };
        let place = Place { shard: self.clone(), id, armed: true };
        self.wake();
        let ticket = taken.await.unwrap_or_else(|_| Err(Error::closed()))?;
        Ok((place, ticket))
    }

    /// Waits until nothing waits or runs and the driver has ended.
    pub(crate) async fn settle(&self) {
        loop {
            let mut settled = pin!(self.settled.notified());
            settled.as_mut().enable();
            {
                let line = self.line();
                if line.is_idle() && !line.driving {
                    return;
                }
            }
            settled.await;
        }
    }

    /// Takes a job out that has not started, and gives its place up.
    pub(crate) fn withdraw(self: &Arc<Self>, id: JobId) -> Option<Waiting> {
        let job = self.line().withdraw(id)?;
        self.wake();
        Some(job)
    }

    /// Tells a failed command to whom it may concern.
    pub(crate) fn report(&self, error: StateError) {
        tracing::warn!(queue = %self.queue, error = %error, kind = ?error.kind(), "the state did not answer");
        if let Some(hook) = self.on_error.clone() {
            // The hook is the application's: it may block or panic, and the driver must not.
            self.host.spawn_blocking(Box::new(move || hook(&Error::from(error))));
        }
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

/// Whether a job is new to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    New,
    Again,
}

/// The place of a running job: while it lives, the job counts as running.
pub(crate) struct Running {
    shard: Arc<Shard>,
    id: JobId,
    pub(crate) ticket: Ticket,
    #[cfg(feature = "tower")]
    since: tokio::time::Instant,
}

impl Running {
    pub(crate) fn new(shard: Arc<Shard>, id: JobId, ticket: Ticket) -> Self {
        Self {
            #[cfg(feature = "tower")]
            since: shard.host.now(),
            shard,
            id,
            ticket,
        }
    }

    /// How long ago it started.
    #[cfg(feature = "tower")]
    pub(crate) fn age(&self) -> Duration {
        self.shard.host.now().saturating_duration_since(self.since)
    }

    /// Where it runs.
    pub(crate) fn host(&self) -> Arc<dyn Host> {
        self.shard.host.clone()
    }

    /// Lets `shutdown` end the job.
    pub(crate) fn abort_with(&self, handle: AbortHandle) {
        self.shard.line().running.insert(self.id, Some(handle));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.shard.line().finish(self.id) {
            self.shard.settled.notify_waiters();
            self.shard.wake();
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

/// The place of a waiting job: dropped before it is disarmed, it gives the place up.
pub(crate) struct Place {
    pub(crate) shard: Arc<Shard>,
    pub(crate) id: JobId,
    armed: bool,
}

impl Place {
    /// The job keeps its place whatever becomes of this.
    pub(crate) fn disarm(mut self) -> JobId {
        self.armed = false;
        self.id
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.armed
            && let Some(job) = self.shard.withdraw(self.id)
        {
            dispose(job);
        }
    }
}
