//! What an application sees when something goes wrong.

use std::{
    any::Any,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use interval_queue_contract::{InvalidInput, StateError, StateErrorKind, describe};

/// What an [`Error`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value that cannot be used; the text names it and what would be right.
    Invalid,
    /// The queue was closed and takes no more jobs.
    Closed,
    /// The shared state failed; [`Error::state`] tells how.
    State,
    /// The job was cancelled before it finished.
    Cancelled,
    /// The job would start, or was to have started, later than its `start_within`.
    TooLate,
    /// The job ran for longer than its `timeout`.
    TimedOut,
    /// As many jobs of the shard wait as may, and the call was not to wait for room.
    Full,
    /// The job panicked; [`Error::into_panic`] has what it panicked with. Or the opening of the queue of a
    /// [key](crate::IntervalQueues::get) did, which all who waited for it are told in words.
    Panicked,
    /// The settings for the queue of a key could not be [loaded](crate::IntervalQueues::loading); `source`
    /// has the error.
    Settings,
}

/// Why a call or a job did not succeed. `Display` is one line; the cause is in `source`.
///
/// `Debug` has both for people, since it is what a `main` that returns the error prints; `{:#?}` has the
/// fields.
pub struct Error {
    kind: ErrorKind,
    message: String,
    cause: Cause,
}

/// What is behind an error.
enum Cause {
    Nothing,
    State(StateError),
    /// It was refused, since it would have started only after so long.
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

    pub(crate) fn quoted_too_late(quote: Duration, too_late_by: Duration) -> Self {
        let text = format!("the job would start in {quote:.1?}, {too_late_by:.1?} later than it may");
        Self { cause: Cause::StartsIn(quote), ..Self::new(ErrorKind::TooLate, text) }
    }

    pub(crate) fn not_now(starts_in: Option<Duration>) -> Self {
        let text = match starts_in {
            Some(starts_in) => format!("no slot is free now: the job would start in {starts_in:.1?}"),
            None => "no slot is free now, and nobody can tell when one will be: the queue is paused".into(),
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

    /// The queue of a key could not be opened, for all who wait for it.
    pub(crate) fn opening_panicked(payload: &(dyn Any + Send)) -> Self {
        Self::new(ErrorKind::Panicked, panic_text("the opening", payload))
    }

    /// The error of one who could not open the queue of a key, for each of those who wait for it.
    pub(crate) fn of_key(key: &str, error: &Self) -> Self {
        let message = match key.char_indices().nth(LONGEST_KEY) {
            None => format!("key {key:?}: {error}"),
            Some((end, _)) => format!("key {:?}…: {error}", &key[..end]),
        };
        Self { message, ..error.again() }
    }

    /// The settings for the queue of a key could not be loaded.
    pub(crate) fn of_settings(error: Box<dyn std::error::Error + Send + Sync>) -> Self {
        Self {
            cause: Cause::Settings(error.into()),
            ..Self::new(ErrorKind::Settings, "its settings cannot be loaded")
        }
    }

    /// The same, for another who is to be told; without what panicked.
    pub(crate) fn again(&self) -> Self {
        let cause = match &self.cause {
            Cause::State(state) => Cause::State(state.clone()),
            Cause::Settings(error) => Cause::Settings(error.clone()),
            Cause::StartsIn(quote) => Cause::StartsIn(*quote),
            Cause::Nothing | Cause::Panic(_) => Cause::Nothing,
        };
        Self { cause, ..Self::new(self.kind, &*self.message) }
    }

    /// What the error is about.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The error of the shared state behind this one, if there is one.
    pub fn state(&self) -> Option<&StateError> {
        match &self.cause {
            Cause::State(state) => Some(state),
            _ => None,
        }
    }

    /// In how long the job would have started, if it was refused for that
    /// ([`TooLate`](ErrorKind::TooLate)) and somebody could tell.
    pub fn starts_in(&self) -> Option<Duration> {
        match self.cause {
            Cause::StartsIn(starts_in) => Some(starts_in),
            _ => None,
        }
    }

    /// What the job panicked with, for [`std::panic::resume_unwind`].
    pub fn into_panic(self) -> Option<Box<dyn Any + Send>> {
        let Cause::Panic(payload) = self.cause else { return None };
        Some(payload.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

/// What panicked, and with which words if there were any.
fn panic_text(who: &str, payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.map_or_else(|| format!("{who} panicked"), |text| format!("{who} panicked: {text}"))
}

/// How many characters of a key a message shows.
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
