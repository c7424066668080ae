//! The rate of a queue: the record of the interval queue of the same name. Any process may make,
//! change or delete it at any time; without it there is no rate.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use interval_queue::{
    Host, IntervalQueue, OnExisting, QueueName, RateLimit, SharedState, StateError, StateErrorKind,
    contract::{Change, Command, Deletion, Memory, Reply},
};
use interval_queue_worker::COMMAND_TIMEOUT;

use crate::{
    error::{Error, ErrorKind},
    host,
};

#[derive(Debug)]
pub(crate) struct Rate {
    name: QueueName,
    state: Arc<dyn SharedState>,
    /// `None`: the caller's tokio runtime.
    host: Option<Arc<dyn Host>>,
    open: Mutex<Open>,
}

/// This process's cached view of the record.
#[derive(Debug, Default)]
struct Open {
    queue: Option<IntervalQueue>,
    /// Rises with each change of `queue`: a read overtaken by another one changes nothing.
    changes: u64,
}

impl Rate {
    pub(crate) fn new(name: QueueName, state: Arc<dyn SharedState>, host: Option<Arc<dyn Host>>) -> Self {
        Self { name, state, host, open: Mutex::default() }
    }

    fn opened(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rate as last read.
    pub(crate) fn current(&self) -> Option<IntervalQueue> {
        self.opened().queue.clone()
    }

    /// One read, and a command that opens a record new to this process.
    pub(crate) async fn refresh(&self, clock: &dyn Host) -> Result<Option<IntervalQueue>, Error> {
        let changes = self.opened().changes;
        if self.is_stored(clock).await? {
            return match self.current() {
                Some(queue) => Ok(Some(queue)),
                None => self.open(None, OnExisting::Keep).await,
            };
        }
        let gone = {
            let mut open = self.opened();
            let is_latest = open.changes == changes;
            open.changes += u64::from(is_latest && open.queue.is_some());
            if is_latest { open.queue.take() } else { None }
        };
        if let Some(gone) = gone {
            // Polled once and dropped, `shutdown` cancels waiting jobs, so tasks chosen for slots
            // return to the queue. Runs go on.
            let _ = gone.shutdown(COMMAND_TIMEOUT).now_or_never();
        }
        Ok(None)
    }

    async fn is_stored(&self, clock: &dyn Host) -> Result<bool, StateError> {
        let read = self.state.apply(&self.name, Command::Read);
        let reply = host::timeout(clock, COMMAND_TIMEOUT, read).await.unwrap_or_else(timed_out)?;
        reply.read().map(|snapshot| snapshot.is_some())
    }

    /// Makes the record if `pace` is set. `None`: there is no record.
    pub(crate) async fn open(
        &self,
        pace: Option<RateLimit>,
        on_existing: OnExisting,
    ) -> Result<Option<IntervalQueue>, Error> {
        let has_pace = pace.is_some();
        let mut builder =
            IntervalQueue::builder(self.name.as_str()).on_existing(on_existing).brings_back(false);
        if let Some(pace) = pace {
            builder = builder.rate_limit(pace);
        }
        if let Some(host) = self.host.clone() {
            builder = builder.host(host);
        }
        match builder.open(self.state.clone()).await {
            Ok(queue) => {
                let mut open = self.opened();
                open.changes += 1;
                Ok(Some(open.queue.get_or_insert(queue).clone()))
            }
            Err(error)
                if !has_pace
                    && error.state().is_some_and(|state| state.kind() == StateErrorKind::NotFound) =>
            {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn remove(&self, clock: &dyn Host) -> Result<(), Error> {
        let delete = Command::Change(Change::Delete(Deletion::Forced), Memory::default());
        let deleted = host::timeout(clock, COMMAND_TIMEOUT, self.state.apply(&self.name, delete));
        match deleted.await.unwrap_or_else(timed_out) {
            Ok(Reply::Changed(_)) => {}
            Err(error) if error.kind() == StateErrorKind::NotFound => {}
            Ok(other) => {
                return Err(Error::new(ErrorKind::Store, format!("a deletion was answered by {other:?}")));
            }
            Err(error) => return Err(error.into()),
        }
        self.refresh(clock).await.map(drop)
    }
}

fn timed_out() -> Result<Reply, StateError> {
    Err(StateError::new(
        StateErrorKind::TimedOut,
        format!("the store did not answer within {COMMAND_TIMEOUT:?}"),
    ))
}
