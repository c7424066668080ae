//! Ordered looks: what was found and not written since, merged with what was written.

use std::ops::RangeInclusive;

use interval_queue_contract::Micros;
use interval_queue_task_contract::{Edge, Entry, Task, TaskId};

use super::{Ask, Found, Look, Overlay};

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
    These(Vec<Task>),
}

impl<'k> Overlay<'k> {
    /// The tasks of an ordered look. `is_retained` says which tasks are among them, and up to where the look goes.
    pub(super) fn tasks<K: Ord>(
        &mut self,
        ask: Ask,
        want: u32,
        written: Ordered,
        is_retained: impl Fn(&Task) -> bool,
        order: impl Fn(&Task) -> K,
    ) -> Vec<Task> {
        let page = self.page(&ask).and_then(|(look, most, found)| match found {
            Found::Tasks(tasks) => Some((look, most, tasks.as_slice())),
            _ => None,
        });
        let (asked, found) = page.map_or((u32::MAX, &[][..]), |(_, most, found)| (most, found));
        let passed = page.map_or(0, |(look, ..)| self.passed(look, found, |x| x.id));
        let order = |x: &&Task| order(x);
        let stored = found[passed..].iter().filter(|x| self.written.task(x.id).is_none() && is_retained(x));
        let written: Box<dyn Iterator<Item = &Task>> = match &written {
            Ordered::Up(range) => Box::new(self.written.range(range.clone())),
            Ordered::Down(range) => Box::new(self.written.range(range.clone()).rev()),
            Ordered::These(tasks) => Box::new(tasks.iter()),
        };
        let rows = merge(stored, written.filter(|x| is_retained(x)), order, want);
        let sure_until = last_sure(asked, found, &is_retained).map(|last| order(&last));
        let sure = rows.iter().take_while(|row| sure_until.as_ref().is_none_or(|last| order(row) <= *last));
        let lacks = sure_until.is_some() && sure.count() < want as usize;
        let rows = rows.into_iter().cloned().collect();
        if lacks {
            self.miss_more(ask, asked, want, passed);
        }
        rows
    }

    /// The first instant of an ordered look.
    pub(super) fn instant(&mut self, ask: Ask, written: Option<(Micros, TaskId)>) -> Option<Micros> {
        let page = self.page(&ask).and_then(|(look, most, found)| match found {
            Found::Instants(instants) => Some((look, most, instants.as_slice())),
            _ => None,
        });
        let (asked, found) = page.map_or((u32::MAX, &[][..]), |(_, most, found)| (most, found));
        let passed = page.map_or(0, |(look, ..)| self.passed(look, found, |&(_, id)| id));
        let stored = found.get(passed).copied();
        let first = stored.into_iter().chain(written).min();
        let last = last_sure(asked, found, |_| true);
        if last.is_some_and(|last| first.is_none_or(|first| first > *last)) {
            self.miss_more(ask, asked, 1, passed);
        }
        first.map(|(at, _)| at)
    }

    /// The edges of an ordered look. Those that were written are sorted.
    pub(super) fn edges(
        &mut self,
        ask: Ask,
        want: u32,
        written: Vec<Edge>,
        end: impl Fn(&Edge) -> TaskId,
    ) -> Vec<Edge> {
        let page = self.page(&ask).and_then(|(_, most, found)| match found {
            Found::Edges(edges) => Some((most, edges)),
            _ => None,
        });
        let (asked, mut found) = page.map_or((u32::MAX, Vec::new()), |(most, found)| (most, found.clone()));
        // They were found state by state.
        found.sort_by_key(&end);
        let sure_until = last_sure(asked, &found, |_| true).map(&end);
        let many = found.len();
        found.retain(|edge| !self.written.edges.contains_key(&(edge.up, edge.down)));
        let passed = many - found.len();
        let rows = merge(found.into_iter(), written.into_iter(), &end, want);
        let sure = rows.iter().take_while(|row| sure_until.is_none_or(|last| end(row) <= last)).count();
        if sure_until.is_some() && sure < want as usize {
            self.miss_more(ask, asked, want, passed);
        }
        rows
    }

    /// Behind the last row of a page that is full there may be others, which come before what was written.
    fn miss_more(&mut self, ask: Ask, asked: u32, want: u32, passed: usize) {
        let passed = u32::try_from(passed).unwrap_or(u32::MAX);
        let most = asked.saturating_mul(2).max(want.saturating_add(passed));
        self.miss(Ask { most, ..ask });
    }

    /// How many rows at the beginning of a page were written since: they stay so, and are passed once in a command.
    fn passed<T>(&mut self, look: &'k Look, found: &[T], id: impl Fn(&T) -> TaskId) -> usize {
        let Self { passed, written, .. } = self;
        let passed = passed.entry(look).or_default();
        while found.get(*passed).is_some_and(|row| written.task(id(row)).is_some()) {
            *passed += 1;
        }
        *passed
    }

    /// What was found for a look that gives several rows, and how many it was to give.
    pub(super) fn page(&mut self, ask: &Ask) -> Option<(&'k Look, u32, &'k Found)> {
        let known = self.known;
        match known.0.get_key_value(&ask.look) {
            Some((look, (asked, found))) if ask.is_within(asked) => Some((look, asked.most, found)),
            _ => {
                self.miss(ask.clone());
                None
            }
        }
    }
}

/// The row up to which a page is sure, if there may be others behind it. None: there are none that are wanted.
fn last_sure<T>(asked: u32, found: &[T], is_retained: impl Fn(&T) -> bool) -> Option<&T> {
    let is_full = found.len() >= asked as usize;
    // What lies behind a row that is not wanted any more is not wanted, either.
    found.last().filter(|last| is_full && is_retained(last))
}
