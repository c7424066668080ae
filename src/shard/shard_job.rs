//! The types of a shard's jobs.

use std::sync::Arc;

use futures::future::AbortHandle;
use tokio::sync::OwnedSemaphorePermit;

use super::{JobGroup, Shard, running::Running, taken::Caller};
use crate::{
    error::Error,
    line,
    telemetry::{Added, Origin, Traced},
};

pub(crate) type Line = line::DrivenLine<Job, Caller, AbortHandle>;
pub(crate) type Arriving = line::Arriving<Job, Caller>;
pub(crate) type Starting = line::Starting<Job, Caller>;
pub(crate) type Started = line::Started<AbortHandle>;
pub(crate) type Waiting = line::Waiting<Job>;
pub(crate) type Withdrawn = line::Withdrawn<Job, Caller>;

pub(crate) trait Start: Send {
    /// Must not block. Returns the abort handle, if any; `Err` gives the slot back, as nobody wants
    /// the job any more.
    fn start(self: Box<Self>, running: Running) -> Result<Option<AbortHandle>, Running>;

    fn refuse(self: Box<Self>, error: Error);
}

#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) line: line::Terms,
    pub(crate) group: Option<JobGroup>,
}

impl Terms {
    pub(crate) fn without_deadline(mut self) -> Self {
        self.line.deadline = None;
        self
    }

    /// Admits nothing if the group is cancelled.
    pub(crate) fn admit<T>(
        &self,
        shard: &Arc<Shard>,
        arrive: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        match &self.group {
            Some(group) => group.admit(shard, arrive)?,
            None => arrive(),
        }
    }

    /// Pending forever without a group.
    pub(crate) async fn cancelled(&self) {
        match &self.group {
            Some(group) => group.cancelled().await,
            None => std::future::pending().await,
        }
    }
}

pub(crate) struct Job {
    pub(crate) start: Box<dyn Start>,
    added: Added,
    /// `None` for most jobs, to save memory.
    rest: Option<Box<Rest>>,
}

#[derive(Default)]
struct Rest {
    /// `None`: the line is unbounded.
    permit: Option<OwnedSemaphorePermit>,
    traced: Option<Traced>,
}

impl Job {
    pub(crate) fn new(start: Box<dyn Start>) -> Self {
        Self { start, added: Added::default(), rest: None }
    }

    pub(crate) fn with_permit(mut self, permit: Option<OwnedSemaphorePermit>) -> Self {
        if permit.is_some() {
            self.rest.get_or_insert_default().permit = permit;
        }
        self
    }

    pub(crate) fn from(mut self, origin: Origin) -> Self {
        let Origin { added, traced } = origin;
        self.added = added;
        if traced.is_some() {
            self.rest.get_or_insert_default().traced = traced;
        }
        self
    }

    /// Wakes a caller: never call it under the line's lock.
    pub(crate) fn release_permit(&mut self) {
        drop(self.rest.as_mut().and_then(|rest| rest.permit.take()));
    }

    /// A second call lacks the trace.
    pub(crate) fn take_origin(&mut self) -> Origin {
        Origin { added: self.added, traced: self.rest.as_mut().and_then(|rest| rest.traced.take()) }
    }
}

/// Never call it under the line's lock.
pub(crate) fn refuse(withdrawn: Withdrawn, error: Error) {
    let Withdrawn { mut job, caller } = withdrawn;
    job.payload.release_permit();
    if let Some(caller) = caller {
        caller.notify(Err(error.again()));
    }
    job.payload.start.refuse(error);
}
