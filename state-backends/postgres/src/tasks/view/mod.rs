//! The rows of a queue as a command sees them that has to find rows ahead: what was found, and over it what the rules
//! have written.
//!
//! The rules are run on it from the start until they lack nothing. A look that was not found ahead gives what
//! is likely, nothing, and is noted: so one run tells about all that the next one needs, and what came of it
//! is thrown away. There is no store in here.

mod lookup;
mod merge;
mod rows;
#[cfg(test)]
#[path = "../../../tests/unit/view_unit.rs"]
mod tests;
mod written;

use std::collections::HashMap;

use interval_queue_contract::{Micros, StateError};
use interval_queue_task_contract::{Command, Kind, Reply, Task, rules};

pub(crate) use self::{
    lookup::{Lease, Lookup, LookupResult, Selection, Target},
    written::{Change, Written},
};

/// What was found in the course of a command.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadSet(HashMap<Target, (Lookup, LookupResult)>);

impl ReadSet {
    /// Takes down what a look has found.
    pub(crate) fn insert(&mut self, lookup: Lookup, result: LookupResult) {
        self.0.insert(lookup.target.clone(), (lookup, result));
    }

    /// The same, unless it is known.
    pub(crate) fn insert_if_absent(&mut self, target: Target, result: LookupResult) {
        self.0.entry(target.clone()).or_insert_with(|| (Lookup::one(target), result));
    }

    pub(crate) fn get(&self, target: &Target) -> Option<&LookupResult> {
        self.0.get(target).map(|(_, result)| result)
    }

    /// Forgets what these looks have found.
    pub(crate) fn forget(&mut self, matches: impl Fn(&Target) -> bool) {
        self.0.retain(|target, _| !matches(target));
    }

    /// What the looks for ready tasks have found.
    pub(crate) fn ready(&self) -> impl Iterator<Item = ReadyResult<'_>> {
        self.0.iter().filter_map(|(target, entry)| match (target, entry) {
            (Target::Ready(kinds, at_least), (lookup, LookupResult::Tasks(tasks))) => {
                let is_complete = tasks.len() < lookup.limit as usize;
                Some(ReadyResult { kinds, at_least: *at_least, tasks, is_complete })
            }
            _ => None,
        })
    }

    #[cfg(test)]
    pub(crate) fn has(&self, target: &Target) -> bool {
        self.0.contains_key(target)
    }
}

/// What a look for ready tasks has found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadyResult<'k> {
    pub(crate) kinds: &'k [Kind],
    pub(crate) at_least: Option<i32>,
    /// In their order.
    pub(crate) tasks: &'k [Task],
    /// Whether there are no others.
    pub(crate) is_complete: bool,
}

/// What comes of a run of the rules.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The reply, or why the command is refused, and what is to be stored before that may be told.
    Decided(Result<Reply, StateError>, Box<Written>),
    /// More has to be found.
    Missing(Vec<Lookup>),
}

/// Runs the rules on what is known.
pub(crate) fn decide(read_set: &ReadSet, now: Micros, command: &Command) -> Outcome {
    let (written, missing, passed) = Default::default();
    let mut view = TransactionView { read_set, written, missing, passed };
    let reply = rules::apply(&mut view, now, command);
    if view.missing.is_empty() {
        return Outcome::Decided(reply, Box::new(view.written));
    }
    Outcome::Missing(view.missing.into_values().collect())
}

/// One run of the rules.
struct TransactionView<'k> {
    read_set: &'k ReadSet,
    written: Written,
    missing: HashMap<Target, Lookup>,
    /// By look, how many rows at the beginning of its page were written since.
    passed: HashMap<&'k Target, usize>,
}

impl<'k> TransactionView<'k> {
    /// Notes what was not found ahead, or not enough of it.
    fn miss(&mut self, lookup: Lookup) {
        let noted = self.missing.entry(lookup.target.clone()).or_insert_with(|| lookup.clone());
        noted.limit = noted.limit.max(lookup.limit);
        noted.until = noted.until.max(lookup.until);
    }

    /// What was found, if it answers this.
    fn look_up(&mut self, lookup: &Lookup) -> Option<&'k LookupResult> {
        let read_set = self.read_set;
        match read_set.0.get(&lookup.target) {
            Some((earlier, result)) if lookup.is_covered_by(earlier) => Some(result),
            _ => {
                self.miss(lookup.clone());
                None
            }
        }
    }
}
