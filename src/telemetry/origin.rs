//! Where a job comes from: when it was added, and in which span.

use std::time::Instant;

use super::{Scope, TARGET};

/// When and where jobs were added.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) added: Added,
    /// None while nobody wants spans.
    pub(crate) traced: Option<Traced>,
}

/// What a job keeps while somebody wants spans.
#[derive(Clone, Debug)]
pub(crate) struct Traced {
    pub(super) since: Instant,
    pub(super) parent: Scope,
}

impl Origin {
    /// The current span and the instant of the call.
    pub(crate) fn here(called: Instant) -> Self {
        let wanted = tracing::span_enabled!(target: TARGET, tracing::Level::INFO);
        let traced = wanted.then(|| Traced { since: called, parent: Scope::current() });
        Self { added: Added::at(called), traced }
    }

    /// When they were added, if somebody measures that.
    pub(super) fn since(&self) -> Option<Instant> {
        self.traced.as_ref().map(|traced| traced.since).or(self.added.since())
    }
}

/// When a job was added, if somebody measures that.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Added {
    #[cfg(feature = "metrics")]
    since: Option<Instant>,
}

impl Added {
    #[cfg(feature = "metrics")]
    fn at(since: Instant) -> Self {
        Self { since: Some(since) }
    }

    #[cfg(not(feature = "metrics"))]
    fn at(_: Instant) -> Self {
        Self {}
    }

    #[cfg(feature = "metrics")]
    pub(super) fn since(self) -> Option<Instant> {
        self.since
    }

    #[cfg(not(feature = "metrics"))]
    pub(super) fn since(self) -> Option<Instant> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_kept_while_nobody_subscribes() {
        assert!(Origin::here(crate::clock::now()).traced.is_none());
        if cfg!(not(feature = "metrics")) {
            assert_eq!(size_of::<Added>(), 0);
            assert!(!crate::telemetry::anybody_listens());
        }
    }
}
