//! The gates in their order: edges, time, key. And who gets a place of a key.

use super::Work;
use crate::{EdgeState, Key, KeyRow, Rows, State, Task};

/// So many places of a key are given or taken at once; the rest is housekeeping.
const LEVEL: u32 = 8;

impl<R: Rows> Work<'_, R> {
    /// Where a task goes that passes its gates: as far as it comes. Of it `before` is stored. What it held and does not
    /// hold any more goes to the next in line.
    pub(super) fn admit(&mut self, before: &Task, mut x: Task) -> Result<(), R::Error> {
        x.unserved = false;
        x.state = if x.has_edges && self.rows.has_pending(x.id)? {
            // What it waits for may need the key.
            x.holds_key = false;
            // A rolled-back store may hear of a run before it has looked at the upstreams.
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

    /// Gives the place of a key to the next in line, if a task held one and does not any more.
    pub(super) fn free(&mut self, before: &Task, after: &Task) -> Result<(), R::Error> {
        match &before.key {
            Some(key) if before.holds_key && !(after.holds_key && after.key == before.key) => {
                self.level_some(key)
            }
            // An ordered one waits until it can be alone, and those behind it with it.
            Some(key)
                if before.ordered && before.state == State::Blocked && after.state != State::Blocked =>
            {
                self.level_some(key)
            }
            _ => Ok(()),
        }
    }

    fn admit_to_key(&mut self, before: &Task, mut x: Task, key: &Key) -> Result<(), R::Error> {
        let base = self.key_limit(key)?;
        let others = self.rows.holders(key)?.saturating_sub(before.holds_key.into());
        let is_open = self.is_open(&x.kind)?;
        // The limit was lowered or the kind was closed, while an ordered one waited for its retry.
        x.holds_key &= is_open && others < base;
        if !x.holds_key {
            let has_room = is_open && others < self.limit_for(key, base, &x)?;
            x.holds_key =
                has_room && self.rows.first_in_line(key)?.is_none_or(|first| first.line() > x.line());
            x.unserved = !is_open;
        }
        x.state = if x.holds_key { State::Ready } else { State::Blocked };
        self.save(before, &x)?;
        if x.holds_key || x.unserved { self.free(before, &x) } else { self.level_some(key) }
    }

    /// How many may hold a place of this key.
    pub(super) fn key_limit(&mut self, key: &Key) -> Result<u64, R::Error> {
        let own = self.rows.key(key)?.and_then(|row| row.limit);
        Ok(own.unwrap_or(self.queue.settings.key_limit).into())
    }

    /// The same for one that wants a place: an ordered one is alone.
    fn limit_for(&mut self, key: &Key, base: u64, x: &Task) -> Result<u64, R::Error> {
        let is_alone = base > 1 && (x.ordered || self.rows.has_ordered_holder(key)?);
        Ok(if is_alone { 1 } else { base })
    }

    fn level_some(&mut self, key: &Key) -> Result<(), R::Error> {
        if !self.level(key, &mut LEVEL.clone())? {
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

    /// As many hold the key as may, the most urgent ones: after a place got free, the limit was changed, or one joined
    /// the line. One that is ready gives its place to a more urgent one, and an ordered one that was not
    /// begun to one that was added before it. False: there is more to do.
    pub(super) fn level(&mut self, key: &Key, share: &mut u32) -> Result<bool, R::Error> {
        let base = self.key_limit(key)?;
        while *share > 0 {
            let held = self.rows.holders(key)?;
            let last = self.rows.last_ready_holder(key)?;
            if let Some(last) = last.as_ref().filter(|_| held > base) {
                self.back_to_line(last)?;
                *share -= 1;
                continue;
            }
            let Some(first) = self.rows.first_in_line(key)? else { return Ok(true) };
            if !self.is_open(&first.kind)? {
                self.save(&first, &Task { unserved: true, ..first.clone() })?;
                *share -= 1;
                continue;
            }
            let has_begun = |x: &Task| x.ordered && x.leased.is_some();
            let gives_way = |last: &&Task| base > 0 && !has_begun(last) && last.line() > first.line();
            if held >= self.limit_for(key, base, &first)? {
                let Some(last) = last.as_ref().filter(gives_way) else { return Ok(true) };
                // Of several holders that run a place is left to nobody before they are as few as may be.
                if held > self.limit_for(key, base, &first)? {
                    return Ok(true);
                }
                self.back_to_line(last)?;
            }
            // A gate once passed stays passed when the clock steps back.
            let not_before = first.not_before.min(self.now);
            let ready = Task { state: State::Ready, holds_key: true, not_before, ..first.clone() };
            self.save(&first, &ready)?;
            *share -= 1;
        }
        Ok(false)
    }

    pub(super) fn back_to_line(&mut self, x: &Task) -> Result<(), R::Error> {
        self.save(x, &Task { state: State::Blocked, holds_key: false, ..x.clone() })
    }
}
