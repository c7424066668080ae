//! A shard: its line behind a lock, the way to wake its driver, and the place that a running job occupies.

use std::{
    fmt,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt, channel::oneshot, future::AbortHandle};
use interval_queue_contract::{
    Change, Command, InvalidInput, Memory, QueueName, Reply, SharedState, Standing, StateError,
    StateErrorKind, Ticket,
};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, TryAcquireError},
    time::Instant,
};

use crate::{
    clock::Lead,
    driver::{self, Driving},
    error::{Error, ErrorKind},
    gate::Gate,
    group::GroupId,
    host::{Host, timeout},
    job::dispose,
    line::{JobId, Line},
    telemetry::{LineGuard, Origin, Outcome, Run, Scope, Sent, Telemetry},
    waiting::{Start, Terms, Waiting, Withdrawn},
    wake::Wake,
};

/// The longest that a command may take. A backend should give up earlier; one that hangs cannot hang the shard.
pub(crate) const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// For how long a shard's memory of the record is good enough for a quote.
pub(crate) const FRESH: Duration = Duration::from_secs(1);

/// The same for a quote that a slot of another queue depends on.
const JOINT_FRESH: Duration = Duration::from_millis(50);

/// Is told of every command that failed.
pub(crate) type ErrorHook = Arc<dyn Fn(&Error) + Send + Sync>;

pub(crate) struct Shard {
    pub(crate) queue: QueueName,
    pub(crate) state: Arc<dyn SharedState>,
    pub(crate) on_error: Option<ErrorHook>,
    /// None: any number of jobs may wait.
    pub(crate) room: Option<Room>,
    line: Mutex<Line>,
    lead: Mutex<Lead>,
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
    pub(crate) wake: Wake,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) telemetry: Telemetry,
}

impl Shard {
    pub(crate) fn new(
        telemetry: Telemetry,
        state: Arc<dyn SharedState>,
        on_error: Option<ErrorHook>,
        room: Option<Room>,
        line: Line,
        wake: Wake,
        host: Arc<dyn Host>,
    ) -> Self {
        Self {
            queue: telemetry.queue().clone(),
            state,
            on_error,
            room,
            line: Mutex::new(line),
            lead: Mutex::default(),
            woken: Notify::new(),
            answered: Notify::new(),
            stopped: Notify::new(),
            settled: Notify::new(),
            ended: Notify::new(),
            wake,
            host,
            telemetry,
        }
    }

    /// The line. Nothing that belongs to a user runs, is dropped or panics while it is locked.
    pub(crate) fn line(&self) -> LineGuard<'_> {
        LineGuard::new(self.line.lock().unwrap_or_else(PoisonError::into_inner), &self.telemetry)
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
        let (sent, sort) = (self.host.now(), Sent::of(&command));
        let applied = timeout(&self.host, COMMAND_TIMEOUT, self.apply(command)).await;
        let reply = applied.unwrap_or_else(|| Err(timed_out()));
        self.telemetry.meter.replied(sort, self.host.now().saturating_duration_since(sent), &reply);
        reply
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
        self.telemetry.rejoined(settling);
        Ok(())
    }

    /// Adds a job and waits for its ticket. Dropping the future, or the place it gives, withdraws the job.
    pub(crate) async fn enqueue(
        self: &Arc<Self>,
        terms: Terms,
        start: Box<dyn Start>,
        entry: Entry,
    ) -> Result<(Place, Ticket), Error> {
        let mut placed = self.enqueue_all(terms, vec![start], entry).await?;
        placed.pop().ok_or_else(Error::closed)
    }

    /// Adds jobs on the same terms, to get their tickets together.
    pub(crate) async fn enqueue_all(
        self: &Arc<Self>,
        terms: Terms,
        starts: Vec<Box<dyn Start>>,
        entry: Entry,
    ) -> Result<Vec<(Place, Ticket)>, Error> {
        let called = self.host.now();
        let origin = Origin::here(called);
        if let Some(deadline) = terms.deadline {
            let quote = self.quote(&terms, starts.len(), deadline).await;
            self.check_quote(quote, called, &terms)?;
        }
        let room = self.room(starts.len(), terms.deadline, entry).await;
        let mut room = room.inspect_err(|error| self.note_too_late(error, called, &terms))?;
        let jobs = starts.into_iter().map(|start| {
            let room = room.as_mut().and_then(|room| room.split(1));
            Waiting::new(terms.clone(), room, start).from(origin.clone())
        });
        let jobs: Vec<_> = jobs.collect();
        let arrived = match &terms.group {
            Some(group) => group.admit(self, || self.arrive(jobs, entry))?,
            None => self.arrive(jobs, entry),
        };
        let arrived = arrived.map_err(|refused| {
            dispose(refused);
            Error::closed()
        })?;
        let arrived: Vec<_> =
            arrived.into_iter().map(|(id, taken)| (Place::new(self.clone(), id), taken)).collect();
        self.wake();
        let mut placed = Vec::with_capacity(arrived.len());
        for (place, taken) in arrived {
            let ticket = taken.await.unwrap_or_else(|_| Err(Error::closed()))?;
            placed.push((place, ticket));
        }
        if let (Some((place, _)), Some(_)) = (placed.last(), terms.deadline) {
            let quote = self.line().expected_start(place.id, self.host.now());
            self.check_quote(quote, called, &terms)?;
        }
        Ok(placed)
    }

    /// Puts jobs into the line, or gives them back if it takes none any more. A closed queue takes no new job, but the next
    /// attempt of one that it accepted.
    pub(crate) fn arrive(
        &self,
        jobs: Vec<Waiting>,
        entry: Entry,
    ) -> Result<Vec<(JobId, TakenReceiver)>, Vec<Waiting>> {
        let mut line = self.line();
        if line.shut_down || (line.closed && entry != Entry::Again) {
            return Err(jobs);
        }
        let now = self.host.now();
        let arrive = |job| {
            let (sender, taken) = oneshot::channel();
            let id = line.arrive(job, sender, now);
            if let Entry::Joint(gate) = entry {
                line.admit_joint(id, gate);
            }
            (id, taken)
        };
        Ok(jobs.into_iter().map(arrive).collect())
    }

    /// Room for new jobs in a line that is bounded.
    pub(crate) async fn room(
        &self,
        jobs: usize,
        deadline: Option<Instant>,
        entry: Entry,
    ) -> Result<Option<OwnedSemaphorePermit>, Error> {
        let Some(room) = self.room.as_ref().filter(|_| entry != Entry::Again) else { return Ok(None) };
        let count = u32::try_from(jobs).ok().filter(|_| jobs <= room.most).ok_or_else(|| {
            let most = room.most;
            InvalidInput::new(format!(
                "{jobs} jobs at once, of which at most {most} may wait: add fewer at once"
            ))
        })?;
        let free = room.free.clone();
        let permit = match entry {
            Entry::IfRoom => match free.try_acquire_many_owned(count) {
                Ok(permit) => permit,
                Err(TryAcquireError::NoPermits) => return Err(Error::full(room.most)),
                Err(TryAcquireError::Closed) => return Err(Error::closed()),
            },
            _ => {
                let permit = free.acquire_many_owned(count);
                let permit = match deadline {
                    Some(deadline) => {
                        let limit = deadline.saturating_duration_since(self.host.now());
                        timeout(&self.host, limit, permit).await.ok_or_else(Error::started_too_late)?
                    }
                    None => permit.await,
                };
                permit.map_err(|_| Error::closed())?
            }
        };
        Ok(Some(permit))
    }

    /// When the last of so many new jobs would start. It takes no ticket: one that is given up at once stays in the way of all
    /// quotes until it is passed.
    async fn quote(&self, terms: &Terms, count: usize, deadline: Instant) -> Option<Instant> {
        let patience = deadline.saturating_duration_since(self.host.now());
        let seen = self.look(patience, FRESH).await?;
        self.line().quote(&seen, terms, count, self.host.now())
    }

    /// When a new job would start that needs slots of other queues, too; none if nobody can tell.
    pub(crate) async fn joint_quote(&self, terms: &Terms) -> Option<Instant> {
        let seen = self.look(COMMAND_TIMEOUT, JOINT_FRESH).await.filter(|seen| !seen.paused)?;
        let line = self.line();
        let before = line.waiting.before_new(terms.priority) + line.gated_before_new(terms.priority);
        let quote = line.quote_behind(&seen, before, terms, 1 + line.announced(), self.host.now());
        line.failing.is_none().then_some(quote)
    }

    /// What is known of the record, not long ago.
    async fn look(&self, patience: Duration, fresh: Duration) -> Option<Memory> {
        let sent = self.host.now();
        let known = {
            let line = self.line();
            let is_fresh = |at| sent.saturating_duration_since(at) < fresh;
            let looked = line.looked.filter(|(at, _)| is_fresh(*at)).map(|(_, seen)| seen);
            let known = is_fresh(line.last_step) || line.failing.is_some();
            known.then_some(line.memory).or(looked)
        };
        if known.is_some() {
            return known;
        }
        let looked = timeout(&self.host, patience, self.command(Command::Read)).await?;
        // Who cannot look goes on as if there were no quote: the step that takes the ticket tells what is wrong.
        let snapshot = looked.and_then(Reply::read).ok()??;
        let mut seen = Memory::of(&snapshot.record);
        if snapshot.standing() == Standing::Empty {
            // What is between belongs to nobody.
            seen.ticket = seen.current;
        }
        let mut line = self.line();
        line.clock.observe(snapshot.at, sent, self.host.now());
        line.looked = Some((sent, seen));
        Some(seen)
    }

    /// Fails if the start that is quoted for a job is too late.
    fn check_quote(&self, quote: Option<Instant>, called: Instant, terms: &Terms) -> Result<(), Error> {
        match (quote, terms.deadline) {
            (Some(start), Some(deadline)) if start > deadline => {
                let limit = deadline.saturating_duration_since(called);
                let error = Error::quoted_too_late(start.saturating_duration_since(called), limit);
                self.note_too_late(&error, called, terms);
                Err(error)
            }
            _ => Ok(()),
        }
    }

    fn note_too_late(&self, error: &Error, called: Instant, terms: &Terms) {
        if error.kind() == ErrorKind::TooLate {
            self.telemetry.refuse(terms, self.host.now().saturating_duration_since(called));
        }
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
    pub(crate) fn withdraw(self: &Arc<Self>, id: JobId) -> Option<Withdrawn> {
        let job = self.line().withdraw(id)?;
        self.wake();
        Some(job)
    }

    /// Cancels the jobs of a group that have not started. How many they were.
    pub(crate) fn cancel_group(self: &Arc<Self>, group: GroupId) -> usize {
        let withdrawn = self.line().withdraw_group(group);
        let count = withdrawn.len();
        withdrawn.into_iter().for_each(|job| job.refuse(Error::cancelled()));
        if count > 0 {
            self.wake();
        }
        count
    }

    /// Tells jobs that need slots of other queues, too, that this one brings none for now.
    pub(crate) fn tell_stopped(&self) {
        let stopped = {
            let line = self.line();
            line.memory.paused || line.failing.is_some()
        };
        if stopped {
            self.stopped.notify_waiters();
        }
    }

    /// Tells a failed command to whom it may concern.
    pub(crate) fn report(&self, error: StateError) {
        self.telemetry.state_failed(&error);
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

/// How a job comes into the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// New to the queue; waits for room.
    New,
    /// New to the queue; is refused where there is no room.
    IfRoom,
    /// The next attempt of a job that was accepted, which needs no room.
    Again,
    /// New to the queue; it has its room.
    Joint(Gate),
}

/// How many jobs may wait, and for how many more there is room.
#[derive(Debug)]
pub(crate) struct Room {
    most: usize,
    pub(crate) free: Arc<Semaphore>,
}

impl Room {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, free: Arc::new(Semaphore::new(most)) }
    }
}

/// Brings the ticket that was taken.
pub(crate) type TakenReceiver = oneshot::Receiver<Result<Ticket, Error>>;

/// The place of a running job: while it lives, the job counts as running.
pub(crate) struct Running {
    shard: Arc<Shard>,
    id: JobId,
    pub(crate) ticket: Ticket,
    #[cfg(feature = "tower")]
    since: tokio::time::Instant,
    /// None if nobody listens.
    run: Option<Box<Run>>,
}

impl Running {
    pub(crate) fn new(shard: Arc<Shard>, id: JobId, ticket: Ticket) -> Self {
        Self {
            #[cfg(feature = "tower")]
            since: shard.host.now(),
            shard,
            id,
            ticket,
            run: None,
        }
    }

    /// How long ago it started.
    #[cfg(feature = "tower")]
    pub(crate) fn age(&self) -> Duration {
        self.shard.host.now().saturating_duration_since(self.since)
    }

    pub(crate) fn observed(mut self, run: Option<Box<Run>>) -> Self {
        self.run = run;
        self
    }

    /// Its job begins, or an attempt of it.
    pub(crate) fn begin_job(&mut self, attempt: Option<u32>) {
        if let Some(run) = &mut self.run {
            run.begin_job(&self.shard.telemetry, self.ticket, attempt, self.shard.host.now());
        }
    }

    /// Polls its job, and drops it once it is done.
    pub(crate) fn poll<F: Future>(
        &self,
        job: Pin<&mut Option<F>>,
        context: &mut Context<'_>,
    ) -> Poll<F::Output> {
        match &self.run {
            Some(run) => run.poll(job, context),
            None => Scope::none().poll(job, context),
        }
    }

    /// Its turn begins.
    pub(crate) fn begin_turn(&mut self) {
        if let Some(run) = &mut self.run {
            run.begin_turn(&self.shard.telemetry, self.ticket, self.shard.host.now());
        }
    }

    /// How its job ended, or an attempt of it.
    pub(crate) fn ended(&mut self, outcome: Outcome) {
        if let Some(run) = &mut self.run {
            run.ended(outcome);
        }
    }

    /// Gives the place back, for another job in the same slot.
    pub(crate) fn pass_on(mut self) {
        self.run = None;
    }

    pub(crate) fn id(&self) -> JobId {
        self.id
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
        // Last: who looks on is not ours, and may panic.
        if let Some(run) = self.run.take() {
            run.over(&self.shard.telemetry, self.ticket, self.shard.host.now());
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
    pub(crate) fn new(shard: Arc<Shard>, id: JobId) -> Self {
        Self { shard, id, armed: true }
    }

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
