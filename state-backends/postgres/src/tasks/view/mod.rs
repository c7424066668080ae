//! Transaction view: the rows of a queue as a command sees them, which are the rows read so far,
//! replaced by those that the rules have written.
//!
//! The rules run from the start until nothing is missing. A lookup outside the read set returns no
//! rows and is recorded as missing, so one run collects the reads for the next, and its result is
//! dropped. The module does no I/O.

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

/// All results of lookups, by target.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadSet(HashMap<Target, (Lookup, LookupResult)>);

impl ReadSet {
    pub(crate) fn insert(&mut self, lookup: Lookup, result: LookupResult) {
        self.0.insert(lookup.target.clone(), (lookup, result));
    }

    /// An existing result for the target stays.
    pub(crate) fn insert_if_absent(&mut self, target: Target, result: LookupResult) {
        self.0.entry(target.clone()).or_insert_with(|| (Lookup::one(target), result));
    }

    pub(crate) fn get(&self, target: &Target) -> Option<&LookupResult> {
        self.0.get(target).map(|(_, result)| result)
    }

    pub(crate) fn forget(&mut self, matches: impl Fn(&Target) -> bool) {
        self.0.retain(|target, _| !matches(target));
    }

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

#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadyResult<'k> {
    pub(crate) kinds: &'k [Kind],
    pub(crate) at_least: Option<i32>,
    /// In the order of the lookup.
    pub(crate) tasks: &'k [Task],
    pub(crate) is_complete: bool,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    /// The reply or the rejection, and the rows to store before it is returned.
    Decided(Result<Reply, StateError>, Box<Written>),
    Missing(Vec<Lookup>),
}

pub(crate) fn decide(read_set: &ReadSet, now: Micros, command: &Command) -> Outcome {
    let (written, missing, passed) = Default::default();
    let mut view = TransactionView { read_set, written, missing, passed };
    let reply = rules::apply(&mut view, now, command);
    if view.missing.is_empty() {
        return Outcome::Decided(reply, Box::new(view.written));
    }
    Outcome::Missing(view.missing.into_values().collect())
}

struct TransactionView<'k> {
    read_set: &'k ReadSet,
    written: Written,
    missing: HashMap<Target, Lookup>,
    /// Number of rows at the start of its page that were written since.
    passed: HashMap<&'k Target, usize>,
}

impl<'k> TransactionView<'k> {
    fn miss(&mut self, lookup: Lookup) {
        let noted = self.missing.entry(lookup.target.clone()).or_insert_with(|| lookup.clone());
        noted.limit = noted.limit.max(lookup.limit);
        noted.until = noted.until.max(lookup.until);
    }

    /// `None`: the result is missing.
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
