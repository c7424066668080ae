//! Maintenance: each step does a part within a budget, and reports whether some is left.

use super::Work;
use crate::{
    Counted, KEEP_DAYS, KEEP_IDS, KEEP_PRESENCE, KEEP_TIMES, KeyRow, Presence, RebalanceCursor, Rows, State,
    Stop, Task, Took, WorkerId,
};

/// Budget of a step, in rows.
pub const MAINTENANCE_BUDGET: u32 = 200;

impl<R: Rows> Work<'_, R> {
    /// Returns whether more is due at once.
    pub(super) fn maintain(&mut self, worker: WorkerId) -> Result<bool, R::Error> {
        let mut budget = self.budget;
        let mut is_maintained = true;
        if self.maintains {
            is_maintained = self.fail_tasks_of_dead_workers(worker, &mut budget)?
                && self.end_overdue(&mut budget)?
                && self.rebalance_kinds(&mut budget)?
                && self.rebalance_keys(&mut budget)?
                && self.forget(&mut budget)?;
            if self.queue.maintenance_due == is_maintained {
                self.queue().maintenance_due = !is_maintained;
            }
        }
        let is_notified = self.notify_ends(&mut budget)?;
        Ok(!(is_maintained && is_notified))
    }

    /// The worker of this step lives: it has just reported its tasks.
    fn fail_tasks_of_dead_workers(&mut self, living: WorkerId, budget: &mut u32) -> Result<bool, R::Error> {
        let ended = self.rows.ended_presences(self.lease_clock, false, *budget)?;
        for dead in ended.into_iter().filter(|dead| dead.worker != living) {
            let lease = dead.lease.to_duration();
            let why = format!("its worker ({}) was not heard of for {lease:?}", dead.name());
            for x in self.rows.held_by(dead.worker, *budget)? {
                *budget -= 1;
                self.worker_lost(x, &why)?;
            }
            if *budget == 0 {
                return Ok(false);
            }
            *budget -= 1;
            self.rows.put_presence(&Presence { cleared: true, busy: false, ..dead })?;
        }
        Ok(*budget > 0)
    }

    fn end_overdue(&mut self, budget: &mut u32) -> Result<bool, R::Error> {
        for x in self.rows.overdue(self.now, *budget)? {
            *budget -= 1;
            // The end of another task may have changed this one.
            let Some(x) = self.rows.task(x.id)? else { continue };
            if x.state == State::Leased {
                self.save(&x, &Task { stop: Some(Stop::Deadline), ..x.clone() })?;
                self.notifies = true;
            } else {
                self.end(&x, State::Failed, Some("its deadline passed before it was started"))?;
            }
        }
        Ok(*budget > 0)
    }

    fn rebalance_keys(&mut self, budget: &mut u32) -> Result<bool, R::Error> {
        for row in self.rows.keys_to_rebalance(*budget)? {
            if !self.rebalance(&row.key, budget)? {
                return Ok(false);
            }
            match row.limit {
                None => self.rows.remove_key(&row.key)?,
                Some(_) => self.rows.put_key(&KeyRow { needs_rebalancing: false, ..row })?,
            }
        }
        while let Some(cursor) = self.queue.rebalance_after.clone() {
            let after = match &cursor {
                RebalanceCursor::Begin => None,
                RebalanceCursor::After(key) => Some(key),
            };
            let Some(key) = self.rows.next_key(after)? else {
                self.queue().rebalance_after = None;
                break;
            };
            if *budget == 0 || !self.rebalance(&key, budget)? {
                return Ok(false);
            }
            *budget = budget.saturating_sub(1);
            self.queue().rebalance_after = Some(RebalanceCursor::After(key));
        }
        Ok(*budget > 0)
    }

    fn notify_ends(&mut self, budget: &mut u32) -> Result<bool, R::Error> {
        while *budget > 0 {
            let some = self.rows.unnotified(*budget)?;
            if some.is_empty() {
                self.unnotified = false;
                return Ok(true);
            }
            for x in some {
                // Spent even without downstreams, so that the loop always ends.
                *budget = budget.saturating_sub(1);
                // An earlier notification may have changed this task.
                let Some(x) = self.rows.task(x.id)?.filter(|x| x.state.is_ended() && !x.notified) else {
                    continue;
                };
                if *budget == 0 || !self.notify_downstreams(&x, budget)? {
                    return Ok(false);
                }
            }
        }
        Ok(false)
    }

    fn forget(&mut self, budget: &mut u32) -> Result<bool, R::Error> {
        let (now, lease_clock, keep) = (self.now, self.lease_clock, self.queue.settings.keep);
        if self.hour_passed {
            self.rows
                .forget_times(Took::hour_of(now - KEEP_TIMES), Took::hour_of(now - KEEP_DAYS) / 24 * 24)?;
        }
        for state in [State::Done, State::Failed, State::Cancelled, State::Purged] {
            let mut old = self.rows.ended(state, now - keep.of(state), *budget)?;
            if let Some(most) = keep.most(state) {
                let over = self.number_in(state)?.saturating_sub(most.into()).min(u64::from(*budget));
                if over > old.len() as u64 {
                    old = self.rows.ended(state, now - KEEP_IDS, u32::try_from(over).unwrap_or(*budget))?;
                }
            }
            for x in old {
                // After a clock step this task and all later ones look old.
                if x.ended_lease_clock.is_some_and(|ended| ended + KEEP_IDS > lease_clock) {
                    break;
                }
                *budget -= 1;
                if !self.forget_task(&x, budget)? || *budget == 0 {
                    return Ok(false);
                }
            }
        }
        for dead in self.rows.ended_presences(lease_clock - KEEP_PRESENCE, true, *budget)? {
            *budget -= 1;
            self.rows.remove_presence(dead.worker)?;
        }
        self.forget_events()?;
        Ok(*budget > 0)
    }

    fn number_in(&mut self, state: State) -> Result<u64, R::Error> {
        let counts = self.rows.counts()?;
        let of_state = counts.iter().filter(|(_, counted, _)| *counted == Counted::Now(state));
        Ok(of_state.map(|(.., number)| number).sum())
    }

    /// Removed after its downstreams, which may need its result again.
    fn forget_task(&mut self, x: &Task, budget: &mut u32) -> Result<bool, R::Error> {
        if !self.rows.edges_from(x.id, None, 1)?.is_empty() {
            self.save(x, &Task { retained: true, ..x.clone() })?;
            return Ok(true);
        }
        if x.has_edges {
            for edge in self.rows.edges_to(x.id, None, None, *budget)? {
                *budget -= 1;
                self.remove_edge(&edge)?;
            }
            if *budget == 0 {
                return Ok(false);
            }
        }
        self.rows.count(&x.kind, Counted::Now(x.state), -1)?;
        self.rows.remove(x)?;
        Ok(true)
    }
}
