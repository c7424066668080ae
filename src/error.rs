//! What an application sees when something goes wrong.

use std::{any::Any, fmt, sync::Mutex, time::Duration};

use interval_queue_contract::{InvalidInput, StateError, StateErrorKind};

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
}

/// Why a call or a job did not succeed. `Display` is one line; the cause is in `source`.
pub struct Error {
    kind: ErrorKind,
    message: String,
    state: Option<StateError>,
    panic: Option<Mutex<Box<dyn Any + Send>>>,
}

impl Error {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), state: None, panic: None }
    }

    pub(crate) fn closed() -> Self {
        Self::new(ErrorKind::Closed, "the queue is closed and takes no more jobs")
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "the job was cancelled before it finished")
    }

    pub(crate) fn quoted_too_late(quote: Duration, limit: Duration) -> Self {
        let text = format!("the job would start in {quote:.1?}: it was to start within {limit:?}");
        Self::new(ErrorKind::TooLate, text)
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
        Self { panic: Some(Mutex::new(payload)), ..Self::new(ErrorKind::Panicked, message) }
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
        Self { state: error.state.clone(), ..Self::new(error.kind, message) }
    }

    /// What the error is about.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The error of the shared state behind this one, if there is one.
    pub fn state(&self) -> Option<&StateError> {
        self.state.as_ref()
    }

    /// What the job panicked with, for [`std::panic::resume_unwind`].
    pub fn into_panic(self) -> Option<Box<dyn Any + Send>> {
        let payload = self.panic?;
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
        f.debug_struct("Error")
            .field("kind", &self.kind)
            .field("message", &self.message)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.state.as_ref().and_then(std::error::Error::source)
    }
}

impl From<StateError> for Error {
    fn from(state: StateError) -> Self {
        let kind = match state.kind() {
            StateErrorKind::Invalid => ErrorKind::Invalid,
            _ => ErrorKind::State,
        };
        let message = state.to_string();
        Self { state: Some(state), ..Self::new(kind, message) }
    }
}

impl From<InvalidInput> for Error {
    fn from(invalid: InvalidInput) -> Self {
        Self::new(ErrorKind::Invalid, invalid.to_string())
    }
}
