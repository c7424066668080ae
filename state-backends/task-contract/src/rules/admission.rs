//! Admission: added and due tasks pass their gates during steps. A step that finds as many ready
//! tasks as it may lease admits few or none, so that a large backlog hardly slows down ready work.

use interval_queue_contract::Micros;

use super::{Work, clock::MAINTENANCE_INTERVAL};
use crate::{Kind, Rows, Step, Stepped, Task};

/// While a worker holds tasks, a step admits this fraction of the budget, or as many tasks as it
/// lacks.
pub const BUDGET_PART: u32 = 8;

/// Poll interval for a backlog, after a step without full maintenance.
const POLL_INTERVAL: Micros = Micros::from_millis(1_000);

/// The backlog as one step knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Admission {
    /// Whether tasks passed gates: more may be ready.
    pub(super) some: bool,
    /// Whether tasks are left. `None`: not checked.
    left: Option<bool>,
    /// Whether the worker may poll at once for tasks left, since that slows down no other worker.
    freely: bool,
    /// Whether the worker got less than it wanted.
    lacks: bool,
}

impl<R: Rows> Work<'_, R> {
    /// Admits a part of the backlog, in a step with `lack` ready tasks less than it may lease.
    ///
    /// A step that lacks tasks, or a heartbeat, admits a full budget while no worker holds tasks,
    /// else a part of it. A lacking step without full maintenance then admits as many as it lacks,
    /// if more, and only of kinds that its worker handles. Any other step admits a part if it does
    /// full maintenance, which bounds that by time.
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

    /// Admits up to `most` tasks, only of these kinds if given: half due, half added, more of one
    /// sort if the other has fewer. Returns whether some were admitted, and whether some are left.
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
        // Each upstream of an added task costs as much as a task.
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

    /// Whether the worker polls again at once for tasks left: if that slows down no other worker,
    /// or if the worker got some tasks and lacks more.
    pub(super) fn polls_again(&self, admission: &Admission, reply: &Stepped) -> bool {
        admission.left == Some(true) && (admission.freely || admission.lacks && !reply.leased.is_empty())
    }

    /// When a worker that lacks tasks polls again for the backlog.
    pub(super) fn next_poll(&mut self, admission: &Admission) -> Result<Option<Micros>, R::Error> {
        let is_left = match admission.left {
            Some(left) => left,
            None => !self.rows.added(1)?.is_empty(),
        };
        Ok(is_left.then_some(self.soon()))
    }

    /// When a worker polls again for due tasks that were not admitted.
    pub(super) fn soon(&self) -> Micros {
        if self.maintains { MAINTENANCE_INTERVAL } else { POLL_INTERVAL }
    }
}
