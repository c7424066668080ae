//! Admission: added and due tasks pass their gates during steps. A step with enough ready tasks
//! admits few or none, so that a large backlog hardly slows down ready work.

use interval_queue_contract::Micros;

use super::{Work, clock::MAINTENANCE_INTERVAL};
use crate::{Kind, Rows, Step, Stepped, Task};

/// While a worker holds tasks, a step admits this fraction of the budget, or as many tasks as it
/// lacks.
pub const BUDGET_PART: u32 = 8;

/// Poll interval for a backlog, after a step without full maintenance.
const POLL_INTERVAL: Micros = Micros::from_millis(1_000);

#[derive(Clone, Copy, Debug)]
pub(super) struct Admission {
    pub(super) some: bool,
    /// `None`: not checked.
    left: Option<bool>,
    /// Whether the worker may poll at once for tasks left: it slows down no other worker.
    freely: bool,
    lacks: bool,
}

impl<R: Rows> Work<'_, R> {
    /// Admits a part of the backlog, in a step with `lack` ready tasks less than it may lease.
    ///
    /// A step that lacks tasks, or a heartbeat, admits a full budget while no worker holds tasks,
    /// else a part. A lacking step without full maintenance admits at least what it lacks, only of
    /// its worker's kinds. Any other step admits a part with full maintenance, which bounds that by
    /// time.
    pub(super) fn admit_some(
        &mut self,
        step: &Step,
        served: &[Kind],
        lack: u32,
    ) -> Result<Admission, R::Error> {
        let lacks = lack > 0;
        let beats = step.want == 0 && step.complete.is_empty();
        if !lacks && !beats && !self.maintains {
            return Ok(Admission { some: false, left: None, freely: false, lacks });
        }
        let is_busy = self.rows.shortest_busy_lease(self.lease_clock)?.is_some();
        let whole = !is_busy && (lacks || beats);
        let only = (is_busy && lacks && !self.maintains).then_some(served);
        let part = (self.budget / BUDGET_PART).max(2);
        let most = match only {
            _ if whole => self.budget,
            Some(_) => lack.min(self.budget).max(part),
            None => part,
        };
        let (some, left) = self.admit_page(most, only)?;
        Ok(Admission { some, left: Some(left), freely: whole || beats, lacks })
    }

    /// Half due, half added tasks, more of one sort if the other has fewer; only of these kinds if
    /// given. Returns whether some were admitted, and whether some are left.
    fn admit_page(&mut self, most: u32, only: Option<&[Kind]>) -> Result<(bool, bool), R::Error> {
        let mut due = self.rows.scheduled(self.now, most)?;
        let mut added = self.rows.added(most)?;
        let most = most as usize;
        let mut left = due.len().max(added.len()) >= most;
        let found = due.len() + added.len();
        if let Some(kinds) = only {
            let is_served = |x: &Task| kinds.contains(&x.kind);
            due.retain(is_served);
            added.retain(is_served);
        }
        added.truncate(most.div_ceil(2).max(most.saturating_sub(due.len())));
        due.truncate(most - added.len());
        left |= due.len() + added.len() < found;
        let some = due.len() + added.len() > 0;
        // An upstream costs as much as a task.
        let mut budget = u32::try_from(most).unwrap_or(u32::MAX);
        for x in due {
            self.admit(&x, x.clone())?;
        }
        for x in added {
            if budget == 0 {
                return Ok((some, true));
            }
            budget -= 1;
            if !x.has_edges {
                self.admit(&x, x.clone())?;
            } else if !self.check_upstreams(&x, &mut budget)? {
                return Ok((some, true));
            }
        }
        Ok((some, left))
    }

    /// Whether that slows down no other worker, or the worker got some tasks and lacks more.
    pub(super) fn polls_again(&self, admission: &Admission, reply: &Stepped) -> bool {
        admission.left == Some(true) && (admission.freely || admission.lacks && !reply.leased.is_empty())
    }

    pub(super) fn next_poll(&mut self, admission: &Admission) -> Result<Option<Micros>, R::Error> {
        let is_left = match admission.left {
            Some(left) => left,
            None => !self.rows.added(1)?.is_empty(),
        };
        Ok(is_left.then_some(self.soon()))
    }

    pub(super) fn soon(&self) -> Micros {
        if self.maintains { MAINTENANCE_INTERVAL } else { POLL_INTERVAL }
    }
}
