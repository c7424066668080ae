//! How jobs come into the line: room, quotes, tickets, and the place that is given up unless it is kept.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use interval_queue_contract::{Command, InvalidInput, Memory, Reply, StateError};
use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};

use super::{
    Shard,
    job::{Job, Start, Terms, Waiting},
    taken::{Caller, Taken},
};
use crate::{
    error::{Error, ErrorKind},
    host::sleep_until,
    line::{Gate, JobId, Terms as LineTerms},
    telemetry::{Origin, Refused},
    user_code::dispose,
};

/// How fresh a quote is that a slot of another queue depends on, or that is asked for.
const JOINT_FRESH: Duration = Duration::from_millis(50);

impl Shard {
    /// Puts a job into the line once there is room for it. Dropping the place it gives withdraws the job.
    pub(crate) async fn enqueue(
        self: &Arc<Self>,
        terms: &Terms,
        start: Box<dyn Start>,
        entry: Entry,
    ) -> Result<Accepted, Error> {
        only(self.enqueue_all(terms, vec![start], entry).await?)
    }

    /// The same, if there is room at once.
    pub(crate) fn try_enqueue(
        self: &Arc<Self>,
        terms: &Terms,
        start: Box<dyn Start>,
    ) -> Result<Accepted, Error> {
        only(self.try_enqueue_all(terms, vec![start])?)
    }

    /// Puts jobs on the same terms into the line, to get their tickets together. What refuses one of them
    /// after that is told to it.
    pub(crate) async fn enqueue_all(
        self: &Arc<Self>,
        terms: &Terms,
        starts: Vec<Box<dyn Start>>,
        entry: Entry,
    ) -> Result<Vec<Accepted>, Error> {
        let called = self.host.now();
        let room = if entry == Entry::Again { Ok(None) } else { self.room(starts.len(), terms).await };
        let count = starts.len();
        let room = room.inspect_err(|error| self.note_refusal(error, called, &terms.line, count))?;
        self.admit(terms, starts, entry, room, called)
    }

    /// The same, if there is room at once.
    pub(crate) fn try_enqueue_all(
        self: &Arc<Self>,
        terms: &Terms,
        starts: Vec<Box<dyn Start>>,
    ) -> Result<Vec<Accepted>, Error> {
        let (called, count) = (self.host.now(), starts.len());
        let room = self.free_room(count);
        let room = room.inspect_err(|error| self.note_refusal(error, called, &terms.line, count))?;
        self.admit(terms, starts, Entry::New, room, called)
    }

    fn admit(
        self: &Arc<Self>,
        terms: &Terms,
        starts: Vec<Box<dyn Start>>,
        entry: Entry,
        mut room: Option<OwnedSemaphorePermit>,
        called: Instant,
    ) -> Result<Vec<Accepted>, Error> {
        let origin = Origin::here(called);
        let jobs = starts.into_iter().map(|start| {
            let room = room.as_mut().and_then(|room| room.split(1));
            Waiting::new(terms.line, Job::new(start).in_room(room).from(origin.clone()))
        });
        let jobs: Vec<_> = jobs.collect();
        let count = jobs.len();
        let arrived = terms.admit(self, || self.arrive(jobs, entry));
        let arrived = arrived.inspect_err(|error| self.note_refusal(error, called, &terms.line, count))?;
        if terms.line.deadline.is_some() {
            let now = self.host.now();
            let late: Vec<_> = {
                let mut line = self.line();
                std::iter::from_fn(|| line.next_refused(now)).collect()
            };
            for (late, quote) in late {
                self.refuse_too_late(late, Some(quote), now);
            }
        }
        self.wake();
        Ok(arrived)
    }

    /// Puts jobs into the line, unless it takes none any more. A closed queue takes no new job, but the next
    /// attempt of one that it accepted.
    pub(crate) fn arrive(self: &Arc<Self>, jobs: Vec<Waiting>, entry: Entry) -> Result<Vec<Accepted>, Error> {
        let mut line = self.line();
        if line.shut_down || (line.closed && entry != Entry::Again) {
            drop(line);
            dispose(jobs);
            return Err(Error::closed());
        }
        let now = self.host.now();
        let arrive = |job| {
            let (caller, taken) = Caller::new();
            let gate = if let Entry::Joint(gate) = entry { Some(gate) } else { None };
            Accepted { place: Place::new(self.clone(), line.arrive(job, caller, now, gate)), taken }
        };
        Ok(jobs.into_iter().map(arrive).collect())
    }

    /// Room for new jobs in a line that is bounded, once it is there.
    pub(crate) async fn room(
        &self,
        jobs: usize,
        terms: &Terms,
    ) -> Result<Option<OwnedSemaphorePermit>, Error> {
        match self.free_room(jobs) {
            Err(error) if error.kind() == ErrorKind::Full => {}
            // It waits behind those who wait already, which the semaphore sees to.
            room => return room,
        }
        let Some(room) = &self.room else { return Ok(None) };
        let count = u32::try_from(jobs).unwrap_or(u32::MAX);
        tokio::select! {
            biased;
            () = terms.cancelled() => Err(Error::cancelled()),
            permit = room.free.clone().acquire_many_owned(count) => {
                permit.map(Some).map_err(|_| Error::closed())
            }
            () = sleep_until(&*self.host, terms.line.deadline) => Err(Error::started_too_late()),
        }
    }

    /// The same, if it is there now.
    fn free_room(&self, jobs: usize) -> Result<Option<OwnedSemaphorePermit>, Error> {
        let Some(room) = &self.room else { return Ok(None) };
        let count = u32::try_from(jobs).ok().filter(|_| jobs <= room.most).ok_or_else(|| {
            let most = room.most;
            InvalidInput::new(format!(
                "{jobs} jobs at once, of which at most {most} may wait: add fewer at once"
            ))
        })?;
        match room.free.clone().try_acquire_many_owned(count) {
            Ok(permit) => Ok(Some(permit)),
            Err(TryAcquireError::NoPermits) => Err(Error::full(room.most)),
            Err(TryAcquireError::Closed) => Err(Error::closed()),
        }
    }

    /// When a new job would start that needs slots of other queues, too; none if nobody can tell.
    pub(crate) async fn joint_quote(&self, terms: &Terms) -> Option<Instant> {
        // If the look fails, go on as if there were no quote: the step that takes the ticket tells what is
        // wrong.
        let seen = self.look(JOINT_FRESH).await.ok()??;
        self.line().joint_quote(&seen, &terms.line, self.host.now())
    }

    /// In how long a new job would start; none if nobody can tell.
    pub(crate) async fn quote(&self, terms: &Terms) -> Result<Option<Duration>, Error> {
        let seen = self.look(JOINT_FRESH).await?;
        let now = self.host.now();
        let line = self.line();
        // A record that is gone is brought back as it was.
        let quote = line.quote(&seen.unwrap_or(line.contact.memory), &terms.line, now);
        Ok(quote.map(|start| start.saturating_duration_since(now)))
    }

    /// What is known of the record, not long ago. None if it is gone.
    async fn look(&self, fresh: Duration) -> Result<Option<Memory>, StateError> {
        let sent = self.host.now();
        let known = self.line().known(sent, fresh);
        if known.is_some() {
            return Ok(known);
        }
        let snapshot = self.command(Command::Read).await.and_then(Reply::read)?;
        let received = self.host.now();
        Ok(snapshot.map(|snapshot| self.line().look(&snapshot, sent, received)))
    }

    /// Tells that so many jobs are refused, if that is what the error says.
    pub(crate) fn note_refusal(&self, error: &Error, called: Instant, terms: &LineTerms, jobs: usize) {
        let reason = match error.kind() {
            ErrorKind::TooLate => {
                let waited = self.host.now().saturating_duration_since(called);
                return self.telemetry.too_late(terms.weight, terms.priority, Some(waited), jobs);
            }
            ErrorKind::Full => Refused::Full,
            ErrorKind::Cancelled => Refused::Cancelled,
            ErrorKind::Closed => Refused::Closed,
            _ => return,
        };
        self.telemetry.meter.refused(reason, jobs);
    }
}

/// A single job that was accepted, unless it was refused since.
fn only(accepted: Vec<Accepted>) -> Result<Accepted, Error> {
    let accepted = accepted.into_iter().next().ok_or_else(Error::closed)?;
    accepted.taken.refused().map_or(Ok(accepted), Err)
}

/// How a job comes into the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// New to the queue.
    New,
    /// The next attempt of a job that was accepted, which needs no room.
    Again,
    /// New to the queue; it has its room.
    Joint(Gate),
}

/// A job that is in the line.
pub(crate) struct Accepted {
    pub(crate) place: Place,
    pub(crate) taken: Arc<Taken>,
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
