//! What can go wrong between a shard and its state, for the code that must decide whether to try again.

use std::{error::Error, fmt, sync::Arc};

/// A value that a caller gave and that cannot be used. The text names the value and what would be right.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidInput(String);

impl InvalidInput {
    /// An error with this text: one lower-case line that names the value and what would be right.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// What a [`StateError`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StateErrorKind {
    /// The store did not answer, refused to serve for now, or is being replaced.
    Unreachable,
    /// No answer in time. **The command may have happened.**
    TimedOut,
    /// The record has seen a newer command of this shard; this one changed nothing.
    Superseded,
    /// There is no such queue, file or directory.
    NotFound,
    /// The queue exists with other settings, and the caller asked to fail in that case; or it was to be
    /// deleted, and is used.
    Conflict,
    /// The command or the address cannot be used.
    Invalid,
    /// What is stored is cut off or otherwise not readable. It was left as it is.
    Damaged,
    /// What is stored belongs to something else. It was left as it is.
    Foreign,
    /// What is stored was written by a newer version of this software. It was left as it is.
    NewerVersion,
    /// Not permitted: rights, credentials, a read-only place.
    Denied,
    /// No room left: the disk, or the memory of the server.
    Full,
    /// The place cannot do what a shared state needs, for example exclude with its lock.
    Unsupported,
}

/// A command that did not get its reply.
///
/// Whether the stored record is unchanged: [`StateError::has_no_effect`]. `Display` is one line without the cause; [`Error::source`] has that.
/// `Debug` has both for people, as it is what a `main` that returns the error prints; `{:#?}` has the fields.
#[derive(Clone)]
pub struct StateError {
    kind: StateErrorKind,
    message: String,
    has_no_effect: bool,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl StateError {
    /// An error of this kind. The text is one lower-case line that says what to do about it.
    pub fn new(kind: StateErrorKind, message: impl Into<String>) -> Self {
        let has_no_effect = !matches!(kind, StateErrorKind::Unreachable | StateErrorKind::TimedOut);
        Self { kind, message: message.into(), has_no_effect, source: None }
    }

    /// The same error of a command that was not sent, or that the store has taken back.
    #[must_use]
    pub fn without_effect(mut self) -> Self {
        self.has_no_effect = true;
        self
    }

    /// The same error with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// What the error is about.
    pub fn kind(&self) -> StateErrorKind {
        self.kind
    }

    /// Whether the command certainly changed nothing. Of those that are
    /// [`TimedOut`](StateErrorKind::TimedOut) or [`Unreachable`](StateErrorKind::Unreachable) only what is known
    /// [not to have been carried out](Self::without_effect).
    pub fn has_no_effect(&self) -> bool {
        self.has_no_effect
    }

    /// Whether the same command may succeed later with nobody doing anything about it.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.kind,
            StateErrorKind::Unreachable | StateErrorKind::TimedOut | StateErrorKind::Superseded
        )
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return describe(self, f);
        }
        f.debug_struct("StateError")
            .field("kind", &self.kind)
            .field("message", &self.message)
            .field("has_no_effect", &self.has_no_effect)
            .field("source", &self.source)
            .finish()
    }
}

impl fmt::Debug for InvalidInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(self, f)
    }
}

/// The error, and below it what caused it, unless that was said. For the crates of interval-queue alone.
#[doc(hidden)]
pub fn describe(error: &dyn Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut said = error.to_string();
    f.write_str(&said)?;
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    let mut before = "\n\nCaused by:";
    for cause in causes.map(ToString::to_string) {
        if !said.ends_with(&cause) {
            write!(f, "{before}\n    {cause}")?;
            before = "";
        }
        said = cause;
    }
    Ok(())
}

impl Error for StateError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl From<InvalidInput> for StateError {
    fn from(invalid: InvalidInput) -> Self {
        Self::new(StateErrorKind::Invalid, invalid.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_main_returns_is_read_by_people() {
        let cause = std::io::Error::other("connection refused");
        let error =
            StateError::new(StateErrorKind::Unreachable, "redis cannot be reached").with_source(cause);
        assert_eq!(format!("{error:?}"), "redis cannot be reached\n\nCaused by:\n    connection refused");
        assert!(format!("{error:#?}").contains("kind: Unreachable"));
        let plain = StateError::from(InvalidInput::new("burst 0: give at least 1"));
        assert_eq!(format!("{plain:?}"), "burst 0: give at least 1");
        assert_eq!(format!("{:?}", InvalidInput::new("a value")), "a value");
    }
}
