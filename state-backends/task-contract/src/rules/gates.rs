//! The gates in their order (edges, time, key), and the permits of keys.

use super::Work;
use crate::{EdgeState, Key, KeyRow, Rows, State, Task};

/// Per key; maintenance does the rest.
const MAX_PERMITS_PER_COMMAND: u32 = 8;

impl<R: Rows> Work<'_, R> {
    /// Moves a task, stored as `before`, as far as it gets. Permits that it releases go to other
    /// tasks.
    pub(super) fn admit(&mut self, before: &Task, mut x: Task) -> Result<(), R::Error> {
        x.unserved = false;
        x.state = if x.has_edges && self.rows.has_pending(x.id)? {
            // Its upstreams may need the key.
            x.holds_key = false;
            // In a rolled-back store a run may end before its upstreams were checked.
            let is_new = !self.rows.edges_to(x.id, Some(EdgeState::New), None, 1)?.is_empty();
            if is_new { State::Added } else { State::Waiting }
        } else if x.not_before > self.now {
            State::Scheduled
        } else if let Some(key) = x.key.clone() {
            return self.admit_to_key(before, x, &key);
        } else {
            State::Ready
        };
        self.save(before, &x)?;
        self.free(before, &x)
    }

    /// Grants the permit that the task released. An ordered task may also have blocked others.
    pub(super) fn free(&mut self, before: &Task, after: &Task) -> Result<(), R::Error> {
        match &before.key {
            Some(key) if before.holds_key && !(after.holds_key && after.key == before.key) => {
                self.rebalance_some(key)
            }
            // An ordered task waits until it can be the only holder, and blocks later tasks.
            Some(key)
                if before.ordered && before.state == State::Blocked && after.state != State::Blocked =>
            {
                self.rebalance_some(key)
            }
            _ => Ok(()),
        }
    }

    fn admit_to_key(&mut self, before: &Task, mut x: Task, key: &Key) -> Result<(), R::Error> {
        let base = self.key_limit(key)?;
        let others = self.rows.holders(key)?.saturating_sub(before.holds_key.into());
        let is_open = self.is_open(&x.kind)?;
        // The limit was lowered or the kind closed while an ordered task waited for its retry.
        x.holds_key &= is_open && others < base;
        if !x.holds_key {
            let has_room = is_open && others < self.limit_for(key, base, &x)?;
            x.holds_key = has_room
                && self.rows.first_competitor(key)?.is_none_or(|first| first.key_order() > x.key_order());
            x.unserved = !is_open;
        }
        x.state = if x.holds_key { State::Ready } else { State::Blocked };
        self.save(before, &x)?;
        if x.holds_key || x.unserved { self.free(before, &x) } else { self.rebalance_some(key) }
    }

    pub(super) fn key_limit(&mut self, key: &Key) -> Result<u64, R::Error> {
        let own = self.rows.key(key)?.and_then(|row| row.limit);
        Ok(own.unwrap_or(self.queue.settings.key_limit).into())
    }

    /// An ordered task must be the only holder.
    fn limit_for(&mut self, key: &Key, base: u64, x: &Task) -> Result<u64, R::Error> {
        let is_alone = base > 1 && (x.ordered || self.rows.has_ordered_holder(key)?);
        Ok(if is_alone { 1 } else { base })
    }

    fn rebalance_some(&mut self, key: &Key) -> Result<(), R::Error> {
        if !self.rebalance(key, &mut MAX_PERMITS_PER_COMMAND.clone())? {
            let row = self.rows.key(key)?;
            let row = row.unwrap_or(KeyRow {
                key: key.clone(),
                limit: None,
                paused_at: None,
                needs_rebalancing: true,
            });
            self.rows.put_key(&KeyRow { needs_rebalancing: true, ..row })?;
            self.queue().maintenance_due = true;
        }
        Ok(())
    }

    /// A ready task gives way to a more urgent one, an ordered one that has not begun to one added
    /// before it. Returns false if more is left to do.
    pub(super) fn rebalance(&mut self, key: &Key, budget: &mut u32) -> Result<bool, R::Error> {
        let base = self.key_limit(key)?;
        while *budget > 0 {
            let held = self.rows.holders(key)?;
            let last = self.rows.last_ready_holder(key)?;
            if let Some(last) = last.as_ref().filter(|_| held > base) {
                self.withdraw_permit(last)?;
                *budget -= 1;
                continue;
            }
            let Some(first) = self.rows.first_competitor(key)? else { return Ok(true) };
            if !self.is_open(&first.kind)? {
                self.save(&first, &Task { unserved: true, ..first.clone() })?;
                *budget -= 1;
                continue;
            }
            let has_begun = |x: &Task| x.ordered && x.leased.is_some();
            let gives_way =
                |last: &&Task| base > 0 && !has_begun(last) && last.key_order() > first.key_order();
            if held >= self.limit_for(key, base, &first)? {
                let Some(last) = last.as_ref().filter(gives_way) else { return Ok(true) };
                // With more holders than the limit, one withdrawn permit makes no room.
                if held > self.limit_for(key, base, &first)? {
                    return Ok(true);
                }
                self.withdraw_permit(last)?;
            }
            // A passed time gate stays passed when the clock steps back.
            let not_before = first.not_before.min(self.now);
            let ready = Task { state: State::Ready, holds_key: true, not_before, ..first.clone() };
            self.save(&first, &ready)?;
            *budget -= 1;
        }
        Ok(false)
    }

    pub(super) fn withdraw_permit(&mut self, x: &Task) -> Result<(), R::Error> {
        self.save(x, &Task { state: State::Blocked, holds_key: false, ..x.clone() })
    }
}
