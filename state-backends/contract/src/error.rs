//! Errors between a shard and its store, classified for retries.

use std::{error::Error, fmt, sync::Arc};

/// An unusable value. The text names it and the permitted ones.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidInput(String);

impl InvalidInput {
    /// An error with this text: one lower-case line that names the value and the permitted ones.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// Subject of a [`StateError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StateErrorKind {
    /// The store does not reply, does not serve for now, or is being replaced.
    Unreachable,
    /// No reply in time. **The command may have been executed.**
    TimedOut,
    /// The record has a newer command of this shard. This one changed nothing.
    Superseded,
    /// No such queue, file or directory.
    NotFound,
    /// Opened with [`OnExisting::Fail`](crate::OnExisting::Fail) and other settings, or the
    /// condition of a deletion is not met.
    Conflict,
    /// The command or the address is unusable.
    Invalid,
    /// Stored content is truncated or unreadable. It stays untouched.
    Damaged,
    /// Stored content belongs to something else. It stays untouched.
    Foreign,
    /// A newer version wrote the stored content. It stays untouched.
    NewerVersion,
    /// Not permitted: rights, credentials, a read-only place.
    Denied,
    /// No room on the disk or in the memory of the server.
    Full,
    /// The place cannot serve a shared store, for example because its locks do not exclude.
    Unsupported,
}

/// A command without a reply.
///
/// [`StateError::has_no_effect`]: whether nothing changed. `Display` is one line without the cause;
/// [`Error::source`] is the cause. `Debug` prints both, for a `main` that returns the error;
/// `{:#?}` prints the fields.
#[derive(Clone)]
pub struct StateError {
    kind: StateErrorKind,
    message: String,
    has_no_effect: bool,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl StateError {
    /// An error of this kind. The text is one lower-case line with the remedy.
    pub fn new(kind: StateErrorKind, message: impl Into<String>) -> Self {
        let has_no_effect = !matches!(kind, StateErrorKind::Unreachable | StateErrorKind::TimedOut);
        Self { kind, message: message.into(), has_no_effect, source: None }
    }

    /// Marks the error of a command that was not sent, or that the store rolled back.
    #[must_use]
    pub fn without_effect(mut self) -> Self {
        self.has_no_effect = true;
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// Subject of the error.
    pub fn kind(&self) -> StateErrorKind {
        self.kind
    }

    /// Whether the command certainly changed nothing. A [`TimedOut`](StateErrorKind::TimedOut) or
    /// [`Unreachable`](StateErrorKind::Unreachable) one may have, unless it is marked
    /// [`without_effect`](Self::without_effect).
    pub fn has_no_effect(&self) -> bool {
        self.has_no_effect
    }

    /// Whether a retry may succeed without anyone's intervention.
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

/// Prints the error and each cause that the text before does not end with. Only for the crates of
/// interval-queue.
#[doc(hidden)]
pub fn describe(error: &dyn Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut text = error.to_string();
    f.write_str(&text)?;
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    let mut before = "\n\nCaused by:";
    for cause in causes.map(ToString::to_string) {
        if !text.ends_with(&cause) {
            write!(f, "{before}\n    {cause}")?;
            before = "";
        }
        text = cause;
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
