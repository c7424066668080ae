//! A job as the line of its shard carries it.

use std::sync::Arc;

use futures::future::AbortHandle;
use tokio::sync::OwnedSemaphorePermit;

use super::{JobGroup, Shard, running::Running, taken::Caller};
use crate::{
    error::Error,
    line,
    telemetry::{Added, Origin, Traced},
};

pub(crate) type Line = line::Kept<Job, Caller, AbortHandle>;
pub(crate) type Arriving = line::Arriving<Job, Caller>;
pub(crate) type Starting = line::Starting<Job, Caller>;
pub(crate) type Started = line::Started<AbortHandle>;
pub(crate) type Waiting = line::Waiting<Job>;
pub(crate) type Withdrawn = line::Withdrawn<Job, Caller>;

/// What a waiting job does when its slot comes.
pub(crate) trait Start: Send {
    /// Starts without waiting, and tells how to abort it if that can be told; or gives the place back because
    /// nobody wants the job any more.
    fn start(self: Box<Self>, place: Running) -> Result<Option<AbortHandle>, Running>;

    /// Tells the one that waits for its result why it does not start.
    fn refuse(self: Box<Self>, error: Error);
}

/// The terms on which a job waits.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// What the line has to know of them.
    pub(crate) line: line::Terms,
    pub(crate) group: Option<JobGroup>,
}

impl Terms {
    /// The same, however late.
    pub(crate) fn unhurried(mut self) -> Self {
        self.line.deadline = None;
        self
    }

    /// Lets jobs on these terms into the line of a shard, unless their group was cancelled.
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

    /// Ends once the group, if there is one, is cancelled.
    pub(crate) async fn cancelled(&self) {
        match &self.group {
            Some(group) => group.cancelled().await,
            None => std::future::pending().await,
        }
    }
}

/// A job that has not started.
pub(crate) struct Job {
    pub(crate) start: Box<dyn Start>,
    added: Added,
    /// None for most jobs, so that a million of them take little room.
    rest: Option<Box<Rest>>,
}

/// What few jobs have.
#[derive(Default)]
struct Rest {
    /// Its place in a line that is bounded.
    room: Option<OwnedSemaphorePermit>,
    traced: Option<Traced>,
}

impl Job {
    pub(crate) fn new(start: Box<dyn Start>) -> Self {
        Self { start, added: Added::default(), rest: None }
    }

    /// It takes up room in a line that is bounded.
    pub(crate) fn in_room(mut self, room: Option<OwnedSemaphorePermit>) -> Self {
        if room.is_some() {
            self.rest.get_or_insert_default().room = room;
        }
        self
    }

    /// It comes from there.
    pub(crate) fn from(mut self, origin: Origin) -> Self {
        let Origin { added, traced } = origin;
        self.added = added;
        if traced.is_some() {
            self.rest.get_or_insert_default().traced = traced;
        }
        self
    }

    /// Makes room in a line that is bounded. That wakes a caller: not to be called while the line is locked.
    pub(crate) fn leave_room(&mut self) {
        drop(self.rest.as_mut().and_then(|rest| rest.room.take()));
    }

    /// Where it comes from. To be asked once.
    pub(crate) fn take_origin(&mut self) -> Origin {
        Origin { added: self.added, traced: self.rest.as_mut().and_then(|rest| rest.traced.take()) }
    }
}

/// Tells those who wait for a job that was taken out of the line why it does not start. Not to be called while the
/// line is locked.
pub(crate) fn refuse(withdrawn: Withdrawn, error: Error) {
    let Withdrawn { mut job, caller } = withdrawn;
    job.payload.leave_room();
    if let Some(caller) = caller {
        caller.tell(Err(error.again()));
    }
    job.payload.start.refuse(error);
}
