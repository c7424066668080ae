//! How jobs come into the line: room, quotes, tickets, and the place that is given up unless it is kept.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::channel::oneshot;
use interval_queue_contract::{Command, InvalidInput, MAX_TAKE, Memory, Reply, Ticket};
use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};

use super::{
    Shard,
    job::{Job, Start, Terms, Waiting},
};
use crate::{
    WhenStateIsLost,
    error::{Error, ErrorKind},
    host::{sleep_until, timeout},
    line::{Batch, COMMAND_TIMEOUT, Gate, JobId},
    telemetry::Origin,
    user_code::dispose,
};

/// For how long a shard's memory of the record is good enough for a quote.
pub(crate) const FRESH: Duration = Duration::from_secs(1);

/// The same for a quote that a slot of another queue depends on.
const JOINT_FRESH: Duration = Duration::from_millis(50);

impl Shard {
    /// Adds a job and waits for its ticket. Dropping the future, or the place it gives, withdraws the job.
    pub(crate) async fn enqueue(
        self: &Arc<Self>,
        terms: Terms,
        start: Box<dyn Start>,
        entry: Entry,
    ) -> Result<(Place, Ticket), Error> {
        let mut placed = self.enqueue_all(terms, vec![start], entry).await?;
        let Placed { place, ticket } = placed.pop().ok_or_else(Error::closed)?;
        Ok((place, ticket?))
    }

    /// Adds jobs on the same terms, to get their tickets together. It fails only if none of them starts.
    pub(crate) async fn enqueue_all(
        self: &Arc<Self>,
        terms: Terms,
        starts: Vec<Box<dyn Start>>,
        entry: Entry,
    ) -> Result<Vec<Placed>, Error> {
        let called = self.host.now();
        let origin = Origin::here(called);
        if let Some(deadline) = terms.line.deadline {
            let quote = self.quote(&terms, starts.len(), deadline).await;
            self.check_quote(quote, called, &terms)?;
        }
        let room = self.room(starts.len(), &terms, entry).await;
        let mut room = room.inspect_err(|error| self.note_too_late(error, called, &terms))?;
        let batch = self.may_start_in_part(&terms, starts.len()).then(Batch::default);
        let jobs = starts.into_iter().map(|start| {
            let room = room.as_mut().and_then(|room| room.split(1));
            let job = Job::new(start).in_room(room).from(origin.clone());
            Waiting::new(terms.line, job).together(batch.as_ref())
        });
        let jobs: Vec<_> = jobs.collect();
        let arrived = terms.admit(self, || self.arrive(jobs, entry))?;
        let ids: Vec<_> = arrived.iter().map(|(place, _)| place.id).collect();
        let batch = batch.unwrap_or_default();
        self.wake();
        let mut placed = Vec::with_capacity(arrived.len());
        for (place, taken) in arrived {
            match taken.await.unwrap_or_else(|_| Err(Error::closed())) {
                Err(error) if self.take_back(&ids, &batch) => return Err(error),
                ticket => placed.push(Placed { place, ticket }),
            }
        }
        let last = ids.last().filter(|_| terms.line.deadline.is_some());
        let quote = last.and_then(|last| self.line().expected_start(*last, self.host.now()));
        match self.check_quote(quote, called, &terms) {
            Err(error) if self.take_back(&ids, &batch) => Err(error),
            _ => Ok(placed),
        }
    }

    /// Whether some of these jobs may start and others be refused. Most that are added together take their
    /// tickets together, and need nothing to be remembered by.
    fn may_start_in_part(&self, terms: &Terms, jobs: usize) -> bool {
        let line = self.line();
        let one_by_one = terms.group.is_some()
            || line.identity.when_lost != WhenStateIsLost::Wait
            || jobs + line.backlog.without_ticket() > MAX_TAKE as usize;
        terms.line.deadline.is_some() || (jobs > 1 && one_by_one)
    }

    /// Withdraws jobs that were added together, unless one of them has started.
    fn take_back(self: &Arc<Self>, ids: &[JobId], batch: &Batch) -> bool {
        let Some(withdrawn) = self.line().withdraw_batch(ids, batch) else { return false };
        for mut withdrawn in withdrawn {
            withdrawn.job.payload.leave_room();
            dispose(withdrawn);
        }
        self.wake();
        true
    }

    /// Puts jobs into the line, unless it takes none any more. A closed queue takes no new job, but the next
    /// attempt of one that it accepted.
    pub(crate) fn arrive(
        self: &Arc<Self>,
        jobs: Vec<Waiting>,
        entry: Entry,
    ) -> Result<Vec<(Place, TakenReceiver)>, Error> {
        let mut line = self.line();
        if line.shut_down || (line.closed && entry != Entry::Again) {
            drop(line);
            dispose(jobs);
            return Err(Error::closed());
        }
        let now = self.host.now();
        let arrive = |job| {
            let (sender, taken) = oneshot::channel();
            let gate = if let Entry::Joint(gate) = entry { Some(gate) } else { None };
            (Place::new(self.clone(), line.arrive(job, sender, now, gate)), taken)
        };
        Ok(jobs.into_iter().map(arrive).collect())
    }

    /// Room for new jobs in a line that is bounded.
    pub(crate) async fn room(
        &self,
        jobs: usize,
        terms: &Terms,
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
        if entry == Entry::IfRoom {
            return match free.try_acquire_many_owned(count) {
                Ok(permit) => Ok(Some(permit)),
                Err(TryAcquireError::NoPermits) => Err(Error::full(room.most)),
                Err(TryAcquireError::Closed) => Err(Error::closed()),
            };
        }
        tokio::select! {
            biased;
            () = terms.cancelled() => Err(Error::cancelled()),
            permit = free.acquire_many_owned(count) => permit.map(Some).map_err(|_| Error::closed()),
            () = sleep_until(&*self.host, terms.line.deadline) => Err(Error::started_too_late()),
        }
    }

    /// When the last of so many new jobs would start. It takes no ticket: one that is given up at once stays
    /// in the way of all quotes until it is passed.
    async fn quote(&self, terms: &Terms, count: usize, deadline: Instant) -> Option<Instant> {
        let patience = deadline.saturating_duration_since(self.host.now());
        let seen = self.look(patience, FRESH).await?;
        self.line().quote(&seen, &terms.line, count, self.host.now())
    }

    /// When a new job would start that needs slots of other queues, too; none if nobody can tell.
    pub(crate) async fn joint_quote(&self, terms: &Terms) -> Option<Instant> {
        let seen = self.look(COMMAND_TIMEOUT, JOINT_FRESH).await?;
        self.line().joint_quote(&seen, &terms.line, self.host.now())
    }

    /// What is known of the record, not long ago.
    async fn look(&self, patience: Duration, fresh: Duration) -> Option<Memory> {
        let sent = self.host.now();
        let known = {
            let line = self.line();
            let is_fresh = |at| sent.saturating_duration_since(at) < fresh;
            let looked = line.contact.looked.filter(|(at, _)| is_fresh(*at)).map(|(_, seen)| seen);
            let known = is_fresh(line.contact.heard) || line.contact.failing.is_some();
            known.then_some(line.contact.memory).or(looked)
        };
        if known.is_some() {
            return known;
        }
        let looked = timeout(&self.host, patience, self.command(Command::Read)).await?;
        // If the look fails, go on as if there were no quote: the step that takes the ticket tells what is
        // wrong.
        let snapshot = looked.and_then(Reply::read).ok()??;
        let received = self.host.now();
        Some(self.line().look(&snapshot, sent, received))
    }

    /// Fails if the start that is quoted for a job is too late.
    fn check_quote(&self, quote: Option<Instant>, called: Instant, terms: &Terms) -> Result<(), Error> {
        match (quote, terms.line.deadline) {
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
            let waited = self.host.now().saturating_duration_since(called);
            self.telemetry.too_late(terms.line.weight, terms.line.priority, Some(waited));
        }
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

/// A job that was added.
pub(crate) struct Placed {
    pub(crate) place: Place,
    /// Why it does not start, if others that were added with it have started.
    pub(crate) ticket: Result<Ticket, Error>,
}

/// Brings the ticket that was taken.
pub(crate) type TakenReceiver = oneshot::Receiver<Result<Ticket, Error>>;

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
