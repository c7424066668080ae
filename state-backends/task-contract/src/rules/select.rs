//! Selections of tasks, each of a bounded number of rows.

use super::Work;
use crate::{
    Counted, Cursor, Kind, LogLine, MAX_SCANNED, MAX_SEARCHED, Order, Page, Rows, Selector, State, Stored,
    Tally, Task,
};

/// Selected tasks, and the position after which the next command goes on. `None`: no more.
pub(super) type Selected = (Vec<Task>, Option<Cursor>);

impl<R: Rows> Work<'_, R> {
    /// Of the tasks within reach of one command.
    pub(super) fn select(
        &mut self,
        selector: &Selector,
        after: Cursor,
        limit: u32,
    ) -> Result<Selected, R::Error> {
        let order = after.order;
        let after = selector.begin(after);
        let (found, next) = match &selector.payload {
            Some(text) => self.search(selector, text, after, limit)?,
            None => {
                let found = self.rows.select(selector, after, limit)?;
                let last = found.last().and_then(|last| order.position(last));
                let is_full = found.len() == limit as usize;
                let next = if is_full { last } else { self.end_of_scan(selector, after)? };
                (found, next)
            }
        };
        Ok((found, next.filter(|&next| may_go_on(selector, next))))
    }

    fn end_of_scan(&mut self, selector: &Selector, after: Cursor) -> Result<Option<Cursor>, R::Error> {
        if selector.ids.is_empty() { self.rows.scan_end(after) } else { Ok(None) }
    }

    /// A store may leave the payload's text to this.
    fn search(
        &mut self,
        selector: &Selector,
        text: &str,
        after: Cursor,
        limit: u32,
    ) -> Result<Selected, R::Error> {
        let end = self.end_of_scan(selector, after)?;
        let (mut kept, mut size, mut from) = (Vec::new(), 0, Some(after));
        while let Some(after) = from {
            let found = self.rows.select(selector, after, limit)?;
            let last = found.last().and_then(|last| after.order.position(last));
            from = last.filter(|_| found.len() == limit as usize);
            for task in found {
                let position = after.order.position(&task);
                if end.is_some() && position > end {
                    return Ok((kept, end));
                }
                let payload = self.rows.payload(task.id)?;
                size += payload.as_ref().map_or(0, |payload| payload.as_str().len());
                if payload.is_some_and(|payload| payload.as_str().contains(text)) {
                    kept.push(task);
                }
                if kept.len() == limit as usize || size > MAX_SEARCHED {
                    return Ok((kept, position));
                }
            }
        }
        Ok((kept, end))
    }

    pub(super) fn page(
        &mut self,
        selector: &Selector,
        after: Cursor,
        limit: u32,
        bodies: bool,
    ) -> Result<Page, R::Error> {
        let mut page = Page::default();
        if self.counts_none(selector)? {
            return Ok(page);
        }
        let (found, next) = self.select(selector, after, limit)?;
        let mut size = 0;
        for task in found {
            let position = after.order.position(&task);
            let (payload, result) = match bodies {
                true => (self.rows.payload(task.id)?, self.rows.result(task.id)?),
                false => (None, None),
            };
            let (log, upstreams, downstreams) = (Vec::new(), Vec::new(), Vec::new());
            let stored =
                Stored { task, payload, result, log, upstreams, downstreams, why: None, undecoded: None };
            size += size_of_bodies(&stored);
            page.tasks.push(stored);
            if size > crate::MAX_REPLY {
                page.next = position;
                return Ok(page);
            }
        }
        page.next = next;
        let is_whole = after == after.order.start() && next.is_none() && after.order != Order::Ended;
        page.miscounted = is_whole && self.contradicts(selector, page.tasks.len() as u64)?;
        Ok(page)
    }

    pub(super) fn tally(&mut self, selector: &Selector, after: Option<Cursor>) -> Result<Tally, R::Error> {
        if after.is_none() && selector.is_counted() {
            return Ok(Tally { number: self.counted(selector)?, next: None });
        }
        if self.counts_none(selector)? {
            return Ok(Tally::default());
        }
        let (found, next) = self.select(selector, after.unwrap_or(Order::Oldest.start()), MAX_SCANNED)?;
        Ok(Tally { number: found.len() as u64, next })
    }

    fn counts_none(&mut self, selector: &Selector) -> Result<bool, R::Error> {
        Ok(!(selector.states.is_empty() && selector.kinds.is_empty()) && self.counted(selector)? == 0)
    }

    /// The counts exist by state and kind only.
    fn contradicts(&mut self, selector: &Selector, found: u64) -> Result<bool, R::Error> {
        Ok(selector.is_counted() && self.counted(selector)? != found)
    }

    fn counted(&mut self, selector: &Selector) -> Result<u64, R::Error> {
        let is_selected = |kind: &Kind, state: State| {
            let is_of_kind = selector.kinds.is_empty() || selector.kinds.contains(kind);
            let is_in_state = selector.states.contains(&state);
            is_of_kind && (is_in_state || selector.states.is_empty() && state != State::Purged)
        };
        Ok(number_of(&self.rows.counts()?, is_selected))
    }
}

pub(super) fn number_of(counts: &[(Kind, Counted, u64)], is_one: impl Fn(&Kind, State) -> bool) -> u64 {
    let number = |(kind, counted, number): &(Kind, Counted, u64)| match counted {
        Counted::Now(state) if is_one(kind, *state) => *number,
        _ => 0,
    };
    counts.iter().map(number).sum()
}

pub(super) fn size_of_bodies(stored: &Stored) -> usize {
    let bodies = [&stored.payload, &stored.result].into_iter().flatten().map(|json| json.as_str().len());
    bodies.chain(stored.log.iter().map(LogLine::size)).sum()
}

fn may_go_on(selector: &Selector, next: Cursor) -> bool {
    match next.order {
        Order::Oldest => selector.added_before.is_none_or(|before| next.at < before),
        Order::Newest => selector.added_from.is_none_or(|from| next.at >= from),
        Order::Ended => selector.ended_from.is_none_or(|from| next.at >= from),
    }
}
