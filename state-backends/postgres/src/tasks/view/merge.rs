//! Ordered looks: what was found and not written since, merged with what was written.

use std::ops::RangeInclusive;

use interval_queue_contract::Micros;
use interval_queue_task_contract::{Edge, Entry, Task, TaskId};

use super::{Lookup, LookupResult, Target, TransactionView};

/// At most `want` rows of both, in their order. Both are sorted.
fn merge<T, K: Ord>(
    stored: impl Iterator<Item = T>,
    written: impl Iterator<Item = T>,
    order: impl Fn(&T) -> K,
    want: u32,
) -> Vec<T> {
    let (mut stored, mut written) = (stored.peekable(), written.peekable());
    let mut rows = Vec::new();
    while rows.len() < want as usize {
        let is_stored_next = match (stored.peek(), written.peek()) {
            (Some(stored), Some(written)) => order(stored) < order(written),
            (stored, _) => stored.is_some(),
        };
        let Some(row) = (if is_stored_next { stored.next() } else { written.next() }) else { break };
        rows.push(row);
    }
    rows
}

/// The tasks that were written and belong to an ordered look, in its order.
pub(super) enum Ordered {
    /// Those that have these entries.
    Up(RangeInclusive<Entry>),
    /// Those that have these entries, the last one first.
    Down(RangeInclusive<Entry>),
    Listed(Vec<Task>),
}

impl<'k> TransactionView<'k> {
    /// The tasks of an ordered look. `is_retained` says which tasks are among them, and up to where the look goes.
    pub(super) fn tasks<K: Ord>(
        &mut self,
        lookup: Lookup,
        want: u32,
        written: Ordered,
        is_included: impl Fn(&Task) -> bool,
        order: impl Fn(&Task) -> K,
    ) -> Vec<Task> {
        let page = self.page(&lookup).and_then(|(target, limit, fetched)| match fetched {
            LookupResult::Tasks(tasks) => Some((target, limit, tasks.as_slice())),
            _ => None,
        });
        let (page_limit, fetched) = page.map_or((u32::MAX, &[][..]), |(_, limit, fetched)| (limit, fetched));
        let passed = page.map_or(0, |(target, ..)| self.passed(target, fetched, |x| x.id));
        let order = |x: &&Task| order(x);
        let stored = fetched[passed..].iter().filter(|x| self.written.task(x.id).is_none() && is_included(x));
        let written: Box<dyn Iterator<Item = &Task>> = match &written {
            Ordered::Up(range) => Box::new(self.written.range(range.clone())),
            Ordered::Down(range) => Box::new(self.written.range(range.clone()).rev()),
            Ordered::Listed(tasks) => Box::new(tasks.iter()),
        };
        let rows = merge(stored, written.filter(|x| is_included(x)), order, want);
        let sure_until = last_sure(page_limit, fetched, &is_included).map(|last| order(&last));
        let sure = rows.iter().take_while(|row| sure_until.as_ref().is_none_or(|last| order(row) <= *last));
        let is_short = sure_until.is_some() && sure.count() < want as usize;
        let rows = rows.into_iter().cloned().collect();
        if is_short {
            self.miss_more(lookup, page_limit, want, passed);
        }
        rows
    }

    /// The first instant of an ordered look.
    pub(super) fn instant(&mut self, lookup: Lookup, written: Option<(Micros, TaskId)>) -> Option<Micros> {
        let page = self.page(&lookup).and_then(|(target, limit, fetched)| match fetched {
            LookupResult::Instants(instants) => Some((target, limit, instants.as_slice())),
            _ => None,
        });
        let (page_limit, fetched) = page.map_or((u32::MAX, &[][..]), |(_, limit, fetched)| (limit, fetched));
        let passed = page.map_or(0, |(target, ..)| self.passed(target, fetched, |&(_, id)| id));
        let stored = fetched.get(passed).copied();
        let first = stored.into_iter().chain(written).min();
        let last = last_sure(page_limit, fetched, |_| true);
        if last.is_some_and(|last| first.is_none_or(|first| first > *last)) {
            self.miss_more(lookup, page_limit, 1, passed);
        }
        first.map(|(at, _)| at)
    }

    /// The edges of an ordered look. Those that were written are sorted.
    pub(super) fn edges(
        &mut self,
        lookup: Lookup,
        want: u32,
        written: Vec<Edge>,
        end: impl Fn(&Edge) -> TaskId,
    ) -> Vec<Edge> {
        let page = self.page(&lookup).and_then(|(_, limit, fetched)| match fetched {
            LookupResult::Edges(edges) => Some((limit, edges)),
            _ => None,
        });
        let (page_limit, mut fetched) =
            page.map_or((u32::MAX, Vec::new()), |(limit, fetched)| (limit, fetched.clone()));
        // They were found state by state.
        fetched.sort_by_key(&end);
        let sure_until = last_sure(page_limit, &fetched, |_| true).map(&end);
        let many = fetched.len();
        fetched.retain(|edge| !self.written.edges.contains_key(&(edge.up, edge.down)));
        let passed = many - fetched.len();
        let rows = merge(fetched.into_iter(), written.into_iter(), &end, want);
        let sure = rows.iter().take_while(|row| sure_until.is_none_or(|last| end(row) <= last)).count();
        if sure_until.is_some() && sure < want as usize {
            self.miss_more(lookup, page_limit, want, passed);
        }
        rows
    }

    /// Behind the last row of a page that is full there may be others, which come before what was written.
    fn miss_more(&mut self, lookup: Lookup, page_limit: u32, want: u32, passed: usize) {
        let passed = u32::try_from(passed).unwrap_or(u32::MAX);
        let limit = page_limit.saturating_mul(2).max(want.saturating_add(passed));
        self.miss(Lookup { limit, ..lookup });
    }

    /// How many rows at the beginning of a page were written since: they stay so, and are passed once in a command.
    fn passed<T>(&mut self, target: &'k Target, fetched: &[T], id: impl Fn(&T) -> TaskId) -> usize {
        let Self { passed, written, .. } = self;
        let passed = passed.entry(target).or_default();
        while fetched.get(*passed).is_some_and(|row| written.task(id(row)).is_some()) {
            *passed += 1;
        }
        *passed
    }

    /// What was found for a look that gives several rows, and how many it was to give.
    pub(super) fn page(&mut self, lookup: &Lookup) -> Option<(&'k Target, u32, &'k LookupResult)> {
        let read_set = self.read_set;
        match read_set.0.get_key_value(&lookup.target) {
            Some((target, (earlier, fetched))) if lookup.is_covered_by(earlier) => {
                Some((target, earlier.limit, fetched))
            }
            _ => {
                self.miss(lookup.clone());
                None
            }
        }
    }
}

/// The row up to which a page is sure, if there may be others behind it. None: there are none that are wanted.
fn last_sure<T>(page_limit: u32, fetched: &[T], is_included: impl Fn(&T) -> bool) -> Option<&T> {
    let is_full = fetched.len() >= page_limit as usize;
    // What lies behind a row that is not wanted any more is not wanted, either.
    fetched.last().filter(|last| is_full && is_included(last))
}
