//! Admission of jobs to the line: permits, estimates, tickets.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use interval_queue_contract::{Command, InvalidInput, Memory, Reply, StateError};
use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};

use super::{
    Shard,
    shard_job::{Job, Start, Terms, Waiting},
    taken::{Caller, Taken},
};
use crate::{
    error::{Error, ErrorKind},
    host::sleep_until,
    line::{Gate, JobId, Terms as LineTerms},
    telemetry::{Origin, Refused},
    user_code::dispose,
};

const MAX_ESTIMATE_AGE: Duration = Duration::from_millis(50);

impl Shard {
    /// Waits for a permit. Dropping the `WithdrawGuard` withdraws the job.
    pub(crate) async fn enqueue(
        self: &Arc<Self>,
        terms: &Terms,
        start: Box<dyn Start>,
        entry: Entry,
    ) -> Result<Accepted, Error> {
        only(self.enqueue_all(terms, vec![start], entry).await?)
    }

    /// As `enqueue`, if permits are free now.
    pub(crate) fn try_enqueue(
        self: &Arc<Self>,
        terms: &Terms,
        start: Box<dyn Start>,
    ) -> Result<Accepted, Error> {
        only(self.try_enqueue_all(terms, vec![start])?)
    }

    /// On the same terms, to take their tickets together. Later refusals go to each job itself.
    pub(crate) async fn enqueue_all(
        self: &Arc<Self>,
        terms: &Terms,
        starts: Vec<Box<dyn Start>>,
        entry: Entry,
    ) -> Result<Vec<Accepted>, Error> {
        let called = self.host.now();
        let permits = if entry == Entry::Again { Ok(None) } else { self.acquire(starts.len(), terms).await };
        let count = starts.len();
        let permits = permits.inspect_err(|error| self.note_refusal(error, called, &terms.line, count))?;
        self.admit(terms, starts, entry, permits, called)
    }

    pub(crate) fn try_enqueue_all(
        self: &Arc<Self>,
        terms: &Terms,
        starts: Vec<Box<dyn Start>>,
    ) -> Result<Vec<Accepted>, Error> {
        let (called, count) = (self.host.now(), starts.len());
        let permits = self.try_acquire(count);
        let permits = permits.inspect_err(|error| self.note_refusal(error, called, &terms.line, count))?;
        self.admit(terms, starts, Entry::New, permits, called)
    }

    fn admit(
        self: &Arc<Self>,
        terms: &Terms,
        starts: Vec<Box<dyn Start>>,
        entry: Entry,
        mut permits: Option<OwnedSemaphorePermit>,
        called: Instant,
    ) -> Result<Vec<Accepted>, Error> {
        let origin = Origin::here(called);
        let jobs = starts.into_iter().map(|start| {
            let permit = permits.as_mut().and_then(|permits| permits.split(1));
            Waiting::new(terms.line, Job::new(start).with_permit(permit).from(origin.clone()))
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
            for (late, estimate) in late {
                self.refuse_too_late(late, Some(estimate), now);
            }
        }
        self.wake();
        Ok(arrived)
    }

    /// A closed line still accepts the next attempt of an accepted job.
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
            Accepted { guard: WithdrawGuard::new(self.clone(), line.arrive(job, caller, now, gate)), taken }
        };
        Ok(jobs.into_iter().map(arrive).collect())
    }

    /// `None`: the line is unbounded.
    pub(crate) async fn acquire(
        &self,
        jobs: usize,
        terms: &Terms,
    ) -> Result<Option<OwnedSemaphorePermit>, Error> {
        match self.try_acquire(jobs) {
            Err(error) if error.kind() == ErrorKind::Full => {}
            // The semaphore keeps the order of waiters.
            permits => return permits,
        }
        let Some(capacity) = &self.capacity else { return Ok(None) };
        let count = u32::try_from(jobs).unwrap_or(u32::MAX);
        tokio::select! {
            biased;
            () = terms.cancelled() => Err(Error::cancelled()),
            permit = capacity.free.clone().acquire_many_owned(count) => {
                permit.map(Some).map_err(|_| Error::closed())
            }
            () = sleep_until(&*self.host, terms.line.deadline) => Err(Error::started_too_late()),
        }
    }

    /// Never waits.
    fn try_acquire(&self, jobs: usize) -> Result<Option<OwnedSemaphorePermit>, Error> {
        let Some(capacity) = &self.capacity else { return Ok(None) };
        let count = u32::try_from(jobs).ok().filter(|_| jobs <= capacity.most).ok_or_else(|| {
            let most = capacity.most;
            InvalidInput::new(format!(
                "{jobs} jobs at once, of which at most {most} may wait: add fewer at once"
            ))
        })?;
        match capacity.free.clone().try_acquire_many_owned(count) {
            Ok(permit) => Ok(Some(permit)),
            Err(TryAcquireError::NoPermits) => Err(Error::full(capacity.most)),
            Err(TryAcquireError::Closed) => Err(Error::closed()),
        }
    }

    /// `None`: unknown.
    pub(crate) async fn estimate_joint_start(&self, terms: &Terms) -> Option<Instant> {
        // No estimate if the read fails: the command that takes the ticket reports the error.
        let seen = self.recent_memory(MAX_ESTIMATE_AGE).await.ok()??;
        self.line().estimate_joint_start(&seen, &terms.line, self.host.now())
    }

    /// `None`: unknown.
    pub(crate) async fn estimate_wait(&self, terms: &Terms) -> Result<Option<Duration>, Error> {
        let seen = self.recent_memory(MAX_ESTIMATE_AGE).await?;
        let now = self.host.now();
        let line = self.line();
        // The record was lost and will be restored from memory.
        let estimate = line.estimate_start(&seen.unwrap_or(line.connection.memory), &terms.line, now);
        Ok(estimate.map(|start| start.saturating_duration_since(now)))
    }

    /// At most `fresh` old. `None`: lost by the store.
    async fn recent_memory(&self, fresh: Duration) -> Result<Option<Memory>, StateError> {
        let sent = self.host.now();
        let recent = self.line().recent_memory(sent, fresh);
        if recent.is_some() {
            return Ok(recent);
        }
        let snapshot = self.command(Command::Read).await.and_then(Reply::read)?;
        let received = self.host.now();
        Ok(snapshot.map(|snapshot| self.line().observe(&snapshot, sent, received)))
    }

    /// Counts nothing unless `error` is a refusal.
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

/// Err: the job was refused since.
fn only(accepted: Vec<Accepted>) -> Result<Accepted, Error> {
    let accepted = accepted.into_iter().next().ok_or_else(Error::closed)?;
    accepted.taken.refused().map_or(Ok(accepted), Err)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    New,
    /// Needs no permit.
    Again,
    /// Has its permit.
    Joint(Gate),
}

pub(crate) struct Accepted {
    pub(crate) guard: WithdrawGuard,
    pub(crate) taken: Arc<Taken>,
}

/// Withdraws the job when dropped, unless disarmed.
pub(crate) struct WithdrawGuard {
    pub(crate) shard: Arc<Shard>,
    pub(crate) id: JobId,
    armed: bool,
}

impl WithdrawGuard {
    pub(crate) fn new(shard: Arc<Shard>, id: JobId) -> Self {
        Self { shard, id, armed: true }
    }

    pub(crate) fn disarm(mut self) -> JobId {
        self.armed = false;
        self.id
    }
}

impl Drop for WithdrawGuard {
    fn drop(&mut self) {
        if self.armed
            && let Some(job) = self.shard.withdraw(self.id)
        {
            dispose(job);
        }
    }
}
