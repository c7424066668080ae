//! The rows of a queue as a command sees them that has to find rows ahead: what was found, and over it what the rules
//! have written.
//!
//! The rules are run on it from the start until they lack nothing. A look that was not found ahead gives what
//! is likely, nothing, and is noted: so one run tells about all that the next one needs, and what came of it
//! is thrown away. There is no store in here.

mod look;
mod merge;
mod rows;
#[cfg(test)]
#[path = "../../../tests/unit/overlay.rs"]
mod tests;
mod written;

use std::collections::HashMap;

use interval_queue_contract::{Micros, StateError};
use interval_queue_task_contract::{Command, Kind, Reply, Task, rules};

pub(crate) use self::{
    look::{Ask, Chosen, Found, Lease, Look},
    written::{Change, Written},
};

/// What was found in the course of a command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known(HashMap<Look, (Ask, Found)>);

impl Known {
    /// Takes down what a look has found.
    pub(crate) fn learn(&mut self, ask: Ask, found: Found) {
        self.0.insert(ask.look.clone(), (ask, found));
    }

    /// The same, unless it is known.
    pub(crate) fn learn_beside(&mut self, look: Look, found: Found) {
        self.0.entry(look.clone()).or_insert_with(|| (Ask::one(look), found));
    }

    pub(crate) fn get(&self, look: &Look) -> Option<&Found> {
        self.0.get(look).map(|(_, found)| found)
    }

    /// Forgets what these looks have found.
    pub(crate) fn forget(&mut self, is_one: impl Fn(&Look) -> bool) {
        self.0.retain(|look, _| !is_one(look));
    }

    /// What the looks for ready tasks have found.
    pub(crate) fn ready(&self) -> impl Iterator<Item = FoundReady<'_>> {
        self.0.iter().filter_map(|(look, known)| match (look, known) {
            (Look::Ready(kinds, at_least), (ask, Found::Tasks(tasks))) => {
                let are_all = tasks.len() < ask.most as usize;
                Some(FoundReady { kinds, at_least: *at_least, tasks, are_all })
            }
            _ => None,
        })
    }

    #[cfg(test)]
    pub(crate) fn has(&self, look: &Look) -> bool {
        self.0.contains_key(look)
    }
}

/// What a look for ready tasks has found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundReady<'k> {
    pub(crate) kinds: &'k [Kind],
    pub(crate) at_least: Option<i32>,
    /// In their order.
    pub(crate) tasks: &'k [Task],
    /// Whether there are no others.
    pub(crate) are_all: bool,
}

/// What comes of a run of the rules.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The reply, or why the command is refused, and what is to be stored before that may be told.
    Decided(Result<Reply, StateError>, Box<Written>),
    /// More has to be found.
    Lacks(Vec<Ask>),
}

/// Runs the rules on what is known.
pub(crate) fn decide(known: &Known, now: Micros, command: &Command) -> Outcome {
    let (written, missing, passed) = Default::default();
    let mut overlay = Overlay { known, written, missing, passed };
    let reply = rules::apply(&mut overlay, now, command);
    if overlay.missing.is_empty() {
        return Outcome::Decided(reply, Box::new(overlay.written));
    }
    Outcome::Lacks(overlay.missing.into_values().collect())
}

/// One run of the rules.
struct Overlay<'k> {
    known: &'k Known,
    written: Written,
    missing: HashMap<Look, Ask>,
    /// By look, how many rows at the beginning of its page were written since.
    passed: HashMap<&'k Look, usize>,
}

impl<'k> Overlay<'k> {
    /// Notes what was not found ahead, or not enough of it.
    fn miss(&mut self, ask: Ask) {
        let noted = self.missing.entry(ask.look.clone()).or_insert_with(|| ask.clone());
        noted.most = noted.most.max(ask.most);
        noted.until = noted.until.max(ask.until);
    }

    /// What was found, if it answers this.
    fn found(&mut self, ask: &Ask) -> Option<&'k Found> {
        let known = self.known;
        match known.0.get(&ask.look) {
            Some((asked, found)) if ask.is_within(asked) => Some(found),
            _ => {
                self.miss(ask.clone());
                None
            }
        }
    }
}
