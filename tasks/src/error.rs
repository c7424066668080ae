//! What an application sees when something goes wrong.

use std::{fmt, time::Duration};

use interval_queue::{InvalidInput, StateError, StateErrorKind};
use interval_queue_task_contract::TaskId;

/// What an [`Error`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value that cannot be used; the text names it and what would be right.
    Invalid,
    /// The store failed, and nothing of what was asked for has happened; [`Error::state`] tells how.
    Store,
    /// The store did not answer for as long as is waited for it. **What was asked for may have happened.**
    Unanswered,
    /// A task that was to be added or retried is there already: under its unique name, or since it was sent too long ago.
    /// Or a queue that was to be deleted is in use.
    Conflict,
    /// There is no such task, or no such queue: it was never added, or has ended long ago.
    Missing,
    /// The task that was waited for has failed.
    Failed,
    /// The task that was waited for was cancelled.
    Cancelled,
    /// What is stored does not fit the type that was asked for.
    Mismatch,
    /// The pace of the queue failed; `source` has the error.
    Pace,
}

/// Why a call did not succeed. `Display` is one line; the cause is in `source`.
///
/// `Debug` has both for people, since it is what a `main` that returns the error prints.
pub struct Error {
    kind: ErrorKind,
    message: String,
    cause: Cause,
}

enum Cause {
    Nothing,
    State(StateError),
    Pace(interval_queue::Error),
    Json(serde_json::Error),
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), cause: Cause::Nothing }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    pub(crate) fn missing(id: TaskId) -> Self {
        let text =
            format!("there is no task {id} in this queue: it was not added, or has ended and was purged");
        Self::new(ErrorKind::Missing, text)
    }

    pub(crate) fn name_is_taken(id: TaskId, holder: TaskId) -> Self {
        let text = format!(
            "task {id} is not retried: task {holder} has its unique name; wait until that has ended, or cancel it"
        );
        Self::new(ErrorKind::Conflict, text)
    }

    pub(crate) fn in_use(why: &str) -> Self {
        Self::new(ErrorKind::Conflict, format!("the queue is in use: {why}"))
    }

    /// An `add` that got no answer for so long.
    pub(crate) fn unanswered(what: &str, after: Duration, state: StateError) -> Self {
        let message = format!("{what} got no answer for {after:.0?}, and may have happened: {state}");
        Self { cause: Cause::State(state), ..Self::new(ErrorKind::Unanswered, message) }
    }

    /// A command that no try has brought to the store.
    pub(crate) fn not_happened(what: &str, after: Duration, state: StateError) -> Self {
        let message = format!("{what} did not happen, tried for {after:.0?}: {state}");
        Self { cause: Cause::State(state), ..Self::new(ErrorKind::Store, message) }
    }

    pub(crate) fn mismatch(what: String, error: serde_json::Error) -> Self {
        let message = format!("{what}: {error}");
        Self { cause: Cause::Json(error), ..Self::new(ErrorKind::Mismatch, message) }
    }

    /// What the error is about.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The error of the store behind this one, if there is one.
    pub fn state(&self) -> Option<&StateError> {
        match &self.cause {
            Cause::State(state) => Some(state),
            Cause::Pace(error) => error.state(),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        interval_queue::contract::describe(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            Cause::Nothing => None,
            Cause::State(state) => state.source(),
            Cause::Pace(error) => error.source(),
            Cause::Json(error) => Some(error),
        }
    }
}

impl From<StateError> for Error {
    fn from(state: StateError) -> Self {
        let kind = match state.kind() {
            StateErrorKind::Invalid => ErrorKind::Invalid,
            StateErrorKind::Conflict => ErrorKind::Conflict,
            StateErrorKind::NotFound => ErrorKind::Missing,
            _ => ErrorKind::Store,
        };
        let message = state.to_string();
        Self { cause: Cause::State(state), ..Self::new(kind, message) }
    }
}

impl From<InvalidInput> for Error {
    fn from(invalid: InvalidInput) -> Self {
        Self::invalid(invalid.to_string())
    }
}

impl From<interval_queue::Error> for Error {
    fn from(error: interval_queue::Error) -> Self {
        let kind = match error.kind() {
            interval_queue::ErrorKind::Invalid => ErrorKind::Invalid,
            _ => ErrorKind::Pace,
        };
        let message = error.to_string();
        Self { cause: Cause::Pace(error), ..Self::new(kind, message) }
    }
}
