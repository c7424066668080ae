//! When and in which span a job was added.

use std::time::Instant;

use super::{Scope, TARGET};

#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) added: Added,
    /// `None` without a subscriber.
    pub(crate) traced: Option<Traced>,
}

#[derive(Clone, Debug)]
pub(crate) struct Traced {
    pub(super) since: Instant,
    pub(super) parent: Scope,
}

impl Origin {
    pub(crate) fn here(called: Instant) -> Self {
        let wanted = tracing::span_enabled!(target: TARGET, tracing::Level::INFO);
        let traced = wanted.then(|| Traced { since: called, parent: Scope::current() });
        let added = Added {
            #[cfg(feature = "metrics")]
            since: Some(called),
        };
        Self { added, traced }
    }

    /// `None`: not measured.
    pub(super) fn since(&self) -> Option<Instant> {
        #[cfg(feature = "metrics")]
        let added = self.added.since;
        #[cfg(not(feature = "metrics"))]
        let added = None;
        self.traced.as_ref().map(|traced| traced.since).or(added)
    }
}

/// Empty without the feature `metrics`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Added {
    #[cfg(feature = "metrics")]
    since: Option<Instant>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_kept_while_nobody_subscribes() {
        assert!(Origin::here(crate::clock::now()).traced.is_none());
        if cfg!(not(feature = "metrics")) {
            assert_eq!(size_of::<Added>(), 0);
            assert!(!crate::telemetry::is_observed());
        }
    }
}
