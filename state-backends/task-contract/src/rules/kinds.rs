//! Which kinds may hold keys. Tasks of a paused or unhandled kind become unserved: they neither
//! hold nor compete for keys, and block no task.

use interval_queue_contract::Micros;

use super::Work;
use crate::{Kind, KindRow, Rows, State, Step, Task};

impl<R: Rows> Work<'_, R> {
    pub(super) fn is_open(&mut self, kind: &Kind) -> Result<bool, R::Error> {
        Ok(self.rows.kind(kind)?.is_some_and(|row| row.open))
    }

    /// Returns the kinds that are not paused.
    pub(super) fn serve(&mut self, step: &Step) -> Result<Vec<Kind>, R::Error> {
        let until = self.lease_clock + step.lease;
        // Written when a quarter of the lease has passed: a kind counts as handled for at least
        // three quarters.
        let soon = self.lease_clock + Micros::new(step.lease.get() / 4 * 3);
        let mut served = Vec::with_capacity(step.kinds.len());
        for kind in &step.kinds {
            let row = self.rows.kind(kind)?;
            let mut row = row.unwrap_or_else(|| KindRow {
                kind: kind.clone(),
                paused: false,
                paused_at: None,
                served_until: Micros::ZERO,
                open: false,
                needs_rebalancing: false,
            });
            let opens = !row.open && !row.paused;
            if opens || row.served_until < soon {
                row.served_until = row.served_until.max(until);
                (row.open, row.needs_rebalancing) = (row.open || opens, row.needs_rebalancing || opens);
                self.maintains |= opens;
                self.rows.put_kind(&row)?;
            }
            if !row.paused {
                served.push(row.kind);
            }
        }
        Ok(served)
    }

    /// Returns false if more is left to do.
    pub(super) fn rebalance_kinds(&mut self, budget: &mut u32) -> Result<bool, R::Error> {
        let mut is_all = true;
        for mut row in self.rows.kinds()? {
            let before = row.clone();
            if row.open && (row.paused || row.served_until <= self.lease_clock) {
                (row.open, row.needs_rebalancing) = (false, true);
            }
            if row != before {
                self.rows.put_kind(&row)?;
            }
            if !row.needs_rebalancing {
                continue;
            }
            let some = if row.open {
                self.rows.unserved(&row.kind, *budget)?
            } else {
                self.rows.ready_holders(&row.kind, *budget)?
            };
            for x in some {
                *budget -= 1;
                // A task that gave way is blocked by now; it becomes unserved when it is the first
                // of its key.
                let Some(x) = self.rows.task(x.id)?.filter(|x| x.unserved || x.state == State::Ready) else {
                    continue;
                };
                if row.open {
                    self.admit(&x, x.clone())?;
                } else {
                    let unserved =
                        Task { state: State::Blocked, holds_key: false, unserved: true, ..x.clone() };
                    self.save(&x, &unserved)?;
                    self.free(&x, &unserved)?;
                }
            }
            if *budget == 0 {
                is_all = false;
                break;
            }
            row.needs_rebalancing = false;
            self.rows.put_kind(&row)?;
        }
        Ok(is_all)
    }
}
