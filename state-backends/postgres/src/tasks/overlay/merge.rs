//! Ordered looks: what was found and not written since, merged with what was written.

use interval_queue_contract::Micros;
use interval_queue_task_contract::{Edge, Key, Task, TaskId};

use super::{Ask, Found, Overlay};

/// Rows in their order, as far as they are sure: behind the last one of a page that is full there may be others, which
/// come before what was written. Gives the first `want`, and how many are to be found if that is not enough.
pub(super) fn merge<T, K: Ord>(
    page: Option<(u32, Vec<T>)>,
    stays: impl Fn(&T) -> bool,
    written: impl Iterator<Item = T>,
    order: impl Fn(&T) -> K,
    is_wanted: impl Fn(&T) -> bool,
    want: u32,
) -> (Vec<T>, Option<u32>) {
    let (asked, found) = page.unwrap_or((u32::MAX, Vec::new()));
    let is_full = found.len() >= asked as usize;
    // What lies behind a row that is not wanted any more is not wanted, either.
    let last = found.iter().max_by_key(|row| order(row));
    let sure_until = last.filter(|last| is_full && is_wanted(last)).map(&order);
    let many = found.len();
    let mut rows: Vec<T> = found.into_iter().filter(|row| stays(row) && is_wanted(row)).collect();
    let fallen = many - rows.len();
    rows.extend(written);
    rows.sort_by_key(&order);
    rows.truncate(want as usize);
    let Some(sure_until) = sure_until else { return (rows, None) };
    let sure = rows.iter().take_while(|row| order(row) <= sure_until).count();
    let fallen = u32::try_from(fallen).unwrap_or(u32::MAX);
    let more = asked.saturating_mul(2).max(want.saturating_add(fallen));
    (rows, Some(more).filter(|_| sure < want as usize))
}

impl<'k> Overlay<'k> {
    /// The tasks of an ordered look. `is_wanted` says which of those that were written are among them, and up to where
    /// the look goes; `key` that they all have this one.
    pub(super) fn tasks<K: Ord>(
        &mut self,
        ask: Ask,
        want: u32,
        key: Option<&Key>,
        is_wanted: impl Fn(&Task) -> bool,
        order: impl Fn(&Task) -> K,
    ) -> Vec<Task> {
        let page = self.page(&ask).and_then(|(most, found)| match found {
            Found::Tasks(tasks) => Some((most, tasks.clone())),
            _ => None,
        });
        let written = self.written.tasks_of(key).filter_map(|change| change.after.clone());
        let written = written.filter(|x| is_wanted(x));
        let stays = |x: &Task| !self.written.tasks.contains_key(&x.id);
        let (rows, more) = merge(page, stays, written, order, &is_wanted, want);
        if let Some(most) = more {
            self.miss(Ask { most, ..ask });
        }
        rows
    }

    /// The first instant of an ordered look.
    pub(super) fn instant(&mut self, ask: Ask, of: impl Fn(&Task) -> Option<Micros>) -> Option<Micros> {
        let page = self.page(&ask).and_then(|(most, found)| match found {
            Found::Instants(instants) => Some((most, instants.clone())),
            _ => None,
        });
        let written = self.written.tasks_of(None).filter_map(|change| change.after.as_ref());
        let written = written.filter_map(|x| Some((of(x)?, x.id)));
        let stays = |(_, id): &(Micros, TaskId)| !self.written.tasks.contains_key(id);
        let (rows, more) = merge(page, stays, written, |&row| row, |_| true, 1);
        if let Some(most) = more {
            self.miss(Ask { most, ..ask });
        }
        rows.first().map(|&(at, _)| at)
    }

    /// The edges of an ordered look.
    pub(super) fn edges(
        &mut self,
        ask: Ask,
        want: u32,
        written: Vec<Edge>,
        end: impl Fn(&Edge) -> TaskId,
    ) -> Vec<Edge> {
        let page = self.page(&ask).and_then(|(most, found)| match found {
            Found::Edges(edges) => Some((most, edges.clone())),
            _ => None,
        });
        let stays = |edge: &Edge| !self.written.edges.contains_key(&(edge.up, edge.down));
        let (rows, more) = merge(page, stays, written.into_iter(), end, |_| true, want);
        if let Some(most) = more {
            self.miss(Ask { most, ..ask });
        }
        rows
    }

    /// What was found for a look that gives several rows, and how many it was to give.
    pub(super) fn page(&mut self, ask: &Ask) -> Option<(u32, &'k Found)> {
        let known = self.known;
        match known.0.get(&ask.look) {
            Some((asked, found)) if ask.is_within(asked) => Some((asked.most, found)),
            _ => {
                self.miss(ask.clone());
                None
            }
        }
    }
}
