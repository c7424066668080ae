//! Ordered lookups: stored rows that were not written since, merged with written rows.

use interval_queue_contract::Micros;
use interval_queue_task_contract::{Edge, Task, TaskId};

use super::{Lookup, LookupResult, Target, TransactionView, Written};

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

impl<'k> TransactionView<'k> {
    /// `written`: the written tasks that may belong to the lookup, in its order. A task that
    /// `is_included` rejects ends the lookup.
    pub(super) fn tasks<K: Ord>(
        &mut self,
        lookup: Lookup,
        want: u32,
        written: impl FnOnce(&Written) -> Box<dyn Iterator<Item = &Task> + '_>,
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
        let written = written(&self.written);
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

    /// `written` is sorted.
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
        // The rows are grouped by state.
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

    /// A full page may be followed by rows that precede the written ones: repeats the lookup with a
    /// higher limit.
    fn miss_more(&mut self, lookup: Lookup, page_limit: u32, want: u32, passed: usize) {
        let passed = u32::try_from(passed).unwrap_or(u32::MAX);
        let limit = page_limit.saturating_mul(2).max(want.saturating_add(passed));
        self.miss(Lookup { limit, ..lookup });
    }

    /// Number of leading rows that were written since. It never decreases within a command, so each
    /// row is passed only once.
    fn passed<T>(&mut self, target: &'k Target, fetched: &[T], id: impl Fn(&T) -> TaskId) -> usize {
        let Self { passed, written, .. } = self;
        let passed = passed.entry(target).or_default();
        while fetched.get(*passed).is_some_and(|row| written.task(id(row)).is_some()) {
            *passed += 1;
        }
        *passed
    }

    /// Also returns the limit with which the page was read.
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

/// The last row of a page if more may follow. `None`: no further row is included.
fn last_sure<T>(page_limit: u32, fetched: &[T], is_included: impl Fn(&T) -> bool) -> Option<&T> {
    let is_full = fetched.len() >= page_limit as usize;
    // Later rows are not included either.
    fetched.last().filter(|last| is_full && is_included(last))
}
