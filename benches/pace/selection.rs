//! What of all that could run was asked for.

use std::collections::BTreeSet;

use crate::{Failure, arguments::Arguments, contender::StateKind, state};

/// The names of what could run, and which of them were asked for.
#[derive(Debug)]
pub(crate) struct Selection {
    only: Vec<String>,
    states: Vec<StateKind>,
    /// States that cannot be had here.
    missing: BTreeSet<StateKind>,
}

impl Selection {
    pub(crate) fn new(arguments: &Arguments) -> Self {
        Self { only: arguments.only.clone(), states: arguments.store.clone(), missing: BTreeSet::new() }
    }

    /// Checks that each pattern fits something, and finds out which of the states that were asked for can be
    /// had. A state that cannot is told of and left out.
    pub(crate) fn check<'a>(
        &mut self,
        all: impl IntoIterator<Item = (&'a str, StateKind)>,
    ) -> Result<(), Failure> {
        let all: Vec<_> = all.into_iter().collect();
        for pattern in &self.only {
            if !all.iter().any(|(name, _)| fits(pattern, name)) {
                let words: BTreeSet<&str> = all.iter().flat_map(|(name, _)| name.split(' ')).collect();
                let words = Vec::from_iter(words).join(", ");
                return Err(format!(
                    "--only {pattern:?} fits nothing: use words that one name has, of {words}"
                )
                .into());
            }
        }
        let wanted: Vec<_> = all.iter().filter(|(name, kind)| self.takes(name, *kind)).collect();
        if wanted.is_empty() {
            return Err("what --only asks for is on none of the stores of --store; see --list".into());
        }
        for kind in wanted.iter().map(|(_, kind)| *kind).collect::<BTreeSet<_>>() {
            if let Some(reason) = state::missing(kind) {
                eprintln!("{} is left out: {reason}", kind.name());
                self.missing.insert(kind);
            }
        }
        Ok(())
    }

    /// Whether to run what has this name, on a state of this kind.
    pub(crate) fn takes(&self, name: &str, kind: StateKind) -> bool {
        (self.only.is_empty() || self.only.iter().any(|pattern| fits(pattern, name)))
            && (self.states.is_empty() || self.states.contains(&kind))
            && !self.missing.contains(&kind)
    }
}

/// Whether all words of a pattern are words of a name.
fn fits(pattern: &str, name: &str) -> bool {
    pattern.split_whitespace().all(|word| name.split(' ').any(|part| part == word))
}
