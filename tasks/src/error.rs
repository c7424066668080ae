//! The error type of all calls.

use std::{fmt, time::Duration};

use interval_queue::{InvalidInput, StateError, StateErrorKind};
use interval_queue_task_contract::TaskId;

/// Category of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value cannot be used; the text names it and the correct form.
    Invalid,
    /// The store failed; the command had no effect unless its method documents otherwise. See
    /// [`Error::state`].
    Store,
    /// The store did not answer in time. **The command may have had its effect.**
    Unanswered,
    /// The unique name is taken, the task was first sent too long ago, the queue has other
    /// settings, or the queue to delete is in use.
    Conflict,
    /// No such task or queue: never added, or ended long ago.
    Missing,
    /// The awaited task has failed.
    Failed,
    /// The awaited task was cancelled.
    Cancelled,
    /// The stored value has another type than requested.
    Mismatch,
    /// The rate limit of the queue failed.
    RateLimit,
    /// The [codec](crate::Codec) of the queue cannot encode or decode a value.
    Codec,
}

/// Error of a call. `Display` is one line; `source` is the cause.
///
/// `Debug` prints both for people, since a `main` that returns the error prints `Debug`.
pub struct Error {
    kind: ErrorKind,
    message: String,
    cause: Cause,
}

enum Cause {
    Nothing,
    State(StateError),
    RateLimit(interval_queue::Error),
    Json(serde_json::Error),
    Codec(Box<dyn std::error::Error + Send + Sync>),
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

    /// The command may have happened.
    pub(crate) fn unanswered(what: &str, after: Duration, state: StateError) -> Self {
        let message = format!("{what} got no answer for {after:.0?}, and may have happened: {state}");
        Self { cause: Cause::State(state), ..Self::new(ErrorKind::Unanswered, message) }
    }

    /// No try had an effect.
    pub(crate) fn not_happened(what: &str, after: Duration, state: StateError) -> Self {
        let message = format!("{what} did not happen, tried for {after:.0?}: {state}");
        Self { cause: Cause::State(state), ..Self::new(ErrorKind::Store, message) }
    }

    pub(crate) fn mismatch(what: String, error: serde_json::Error) -> Self {
        let message = format!("{what}: {error}");
        Self { cause: Cause::Json(error), ..Self::new(ErrorKind::Mismatch, message) }
    }

    pub(crate) fn codec(what: String, error: Box<dyn std::error::Error + Send + Sync>) -> Self {
        let message = format!("{what}: {error}");
        Self { cause: Cause::Codec(error), ..Self::new(ErrorKind::Codec, message) }
    }

    /// The category of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The store's error, if it caused this one.
    pub fn state(&self) -> Option<&StateError> {
        match &self.cause {
            Cause::State(state) => Some(state),
            Cause::RateLimit(error) => error.state(),
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
            Cause::RateLimit(error) => error.source(),
            Cause::Json(error) => Some(error),
            Cause::Codec(error) => Some(&**error),
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
            _ => ErrorKind::RateLimit,
        };
        let message = error.to_string();
        Self { cause: Cause::RateLimit(error), ..Self::new(kind, message) }
    }
}
