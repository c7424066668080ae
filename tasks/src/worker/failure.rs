//! [`WorkerFailure`]: failures of a worker that are no failures of a task.

use std::{fmt, sync::Arc};

use interval_queue_task_contract::Key;

use super::core::Core;
use crate::error::Error;

/// A failure in the background of a worker, which retries; see
/// [`WorkerBuilder::on_error`](crate::WorkerBuilder::on_error).
#[derive(Debug)]
#[non_exhaustive]
pub enum WorkerFailure {
    /// A due schedule added no task.
    Schedule {
        /// The name of the schedule.
        name: Key,
        /// The cause.
        error: Error,
    },
    /// The rate of the queue cannot be read, or starts get no slots.
    Rate {
        /// The cause.
        error: Error,
    },
}

impl fmt::Display for WorkerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schedule { name, error } => {
                write!(
                    f,
                    "schedule {:?}: a schedule makes no task here; it is tried again: {error}",
                    name.as_str()
                )
            }
            Self::Rate { error } => {
                write!(f, "the rate cannot be read, or starts get no slots; they are tried again: {error}")
            }
        }
    }
}

impl std::error::Error for WorkerFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let (Self::Schedule { error, .. } | Self::Rate { error }) = self;
        std::error::Error::source(error)
    }
}

#[derive(Clone)]
pub(super) struct ErrorHook(pub(super) Arc<dyn Fn(&WorkerFailure) + Send + Sync>);

impl fmt::Debug for ErrorHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ErrorHook")
    }
}

/// On a thread of its own: the hook is user code, so it may block or panic.
pub(super) fn report(core: &Core, failure: WorkerFailure) {
    if let Some(hook) = core.on_error.clone() {
        core.host().spawn_blocking(Box::new(move || (hook.0)(&failure)));
    }
}
