//! [`Error`], the error of every call and job of this crate.

use std::{
    any::Any,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use interval_queue_contract::{InvalidInput, StateError, StateErrorKind, describe};

/// The category of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value is invalid; the message names it and the valid values.
    Invalid,
    /// The queue was closed and accepts no more jobs.
    Closed,
    /// The store failed; see [`Error::state`].
    State,
    /// The job was cancelled before it finished.
    Cancelled,
    /// The job could not start within its `start_within`.
    TooLate,
    /// The job ran for longer than its `timeout`.
    TimedOut,
    /// The shard has as many waiting jobs as allowed, and the call does not wait.
    Full,
    /// The job panicked; [`Error::into_panic`] returns the payload. Or opening the queue of a
    /// [key](crate::IntervalQueues::get) panicked; every caller gets the message.
    Panicked,
    /// The settings for the queue of a key could not be [loaded](crate::IntervalQueues::loading);
    /// the cause is in `source`.
    Settings,
}

/// Why a call or a job failed. `Display` is one line; the cause is in `source`.
///
/// `Debug` prints both, for a `main` that returns the error; `{:#?}` prints the fields.
pub struct Error {
    kind: ErrorKind,
    message: String,
    cause: Cause,
}

enum Cause {
    Nothing,
    State(StateError),
    /// The job would have started after this delay.
    StartsIn(Duration),
    Settings(Arc<dyn std::error::Error + Send + Sync>),
    Panic(Mutex<Box<dyn Any + Send>>),
}

impl Error {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), cause: Cause::Nothing }
    }

    pub(crate) fn closed() -> Self {
        Self::new(ErrorKind::Closed, "the queue is closed and takes no more jobs")
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "the job was cancelled before it finished")
    }

    pub(crate) fn estimated_too_late(estimate: Duration, too_late_by: Duration) -> Self {
        let text = format!("the job would start in {estimate:.1?}, {too_late_by:.1?} later than it may");
        Self { cause: Cause::StartsIn(estimate), ..Self::new(ErrorKind::TooLate, text) }
    }

    pub(crate) fn not_now(starts_in: Option<Duration>) -> Self {
        let text = match starts_in {
            Some(starts_in) => format!("no slot is free now: the job would start in {starts_in:.1?}"),
            None => "no slot is free now, and it is unknown when one will be: the queue is paused".into(),
        };
        let cause = starts_in.map_or(Cause::Nothing, Cause::StartsIn);
        Self { cause, ..Self::new(ErrorKind::TooLate, text) }
    }

    pub(crate) fn started_too_late() -> Self {
        Self::new(ErrorKind::TooLate, "the job could not start within the time that it had for that")
    }

    pub(crate) fn ran_too_long(limit: Duration) -> Self {
        Self::new(ErrorKind::TimedOut, format!("the job ran for longer than {limit:?}"))
    }

    pub(crate) fn full(most: usize) -> Self {
        Self::new(
            ErrorKind::Full,
            format!("{most} jobs of this shard wait, as many as may: `add` waits for room"),
        )
    }

    pub(crate) fn panicked(payload: Box<dyn Any + Send>) -> Self {
        let message = panic_text("the job", &*payload);
        Self { cause: Cause::Panic(Mutex::new(payload)), ..Self::new(ErrorKind::Panicked, message) }
    }

    /// Each waiting caller gets this error.
    pub(crate) fn opening_panicked(payload: &(dyn Any + Send)) -> Self {
        Self::new(ErrorKind::Panicked, panic_text("the opening", payload))
    }

    pub(crate) fn of_key(key: &str, error: &Self) -> Self {
        let message = match key.char_indices().nth(LONGEST_KEY) {
            None => format!("key {key:?}: {error}"),
            Some((end, _)) => format!("key {:?}…: {error}", &key[..end]),
        };
        Self { message, ..error.again() }
    }

    pub(crate) fn of_settings(error: Box<dyn std::error::Error + Send + Sync>) -> Self {
        Self {
            cause: Cause::Settings(error.into()),
            ..Self::new(ErrorKind::Settings, "its settings cannot be loaded")
        }
    }

    /// Lacks the payload of a panic, which cannot be cloned.
    pub(crate) fn again(&self) -> Self {
        let cause = match &self.cause {
            Cause::State(state) => Cause::State(state.clone()),
            Cause::Settings(error) => Cause::Settings(error.clone()),
            Cause::StartsIn(estimate) => Cause::StartsIn(*estimate),
            Cause::Nothing | Cause::Panic(_) => Cause::Nothing,
        };
        Self { cause, ..Self::new(self.kind, &*self.message) }
    }

    /// The category of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The error of the store that caused this one, if any.
    pub fn state(&self) -> Option<&StateError> {
        match &self.cause {
            Cause::State(state) => Some(state),
            _ => None,
        }
    }

    /// The estimated delay of a job rejected with [`TooLate`](ErrorKind::TooLate). `None`: there
    /// was no estimate.
    pub fn starts_in(&self) -> Option<Duration> {
        match self.cause {
            Cause::StartsIn(starts_in) => Some(starts_in),
            _ => None,
        }
    }

    /// The payload of the job's panic, for [`std::panic::resume_unwind`].
    pub fn into_panic(self) -> Option<Box<dyn Any + Send>> {
        let Cause::Panic(payload) = self.cause else { return None };
        Some(payload.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

fn panic_text(who: &str, payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.map_or_else(|| format!("{who} panicked"), |text| format!("{who} panicked: {text}"))
}

/// Characters of a key in a message.
const LONGEST_KEY: usize = 64;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return describe(self, f);
        }
        f.debug_struct("Error")
            .field("kind", &self.kind)
            .field("message", &self.message)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            Cause::State(state) => state.source(),
            Cause::Settings(error) => Some(&**error),
            Cause::Nothing | Cause::StartsIn(_) | Cause::Panic(_) => None,
        }
    }
}

impl From<StateError> for Error {
    fn from(state: StateError) -> Self {
        let kind = match state.kind() {
            StateErrorKind::Invalid => ErrorKind::Invalid,
            _ => ErrorKind::State,
        };
        let message = state.to_string();
        Self { cause: Cause::State(state), ..Self::new(kind, message) }
    }
}

impl From<InvalidInput> for Error {
    fn from(invalid: InvalidInput) -> Self {
        Self::new(ErrorKind::Invalid, invalid.to_string())
    }
}
