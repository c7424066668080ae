//! Admission: tasks that were added, and scheduled tasks that are due, pass their gates in the steps of workers. A step
//! that finds as many ready tasks as it may lease admits few or none, so that a large backlog slows down ready work little.

use interval_queue_contract::Micros;

use super::{Work, clock::SWEEP};
use crate::{Kind, Rows, Step, Stepped, Task};

/// While a worker holds tasks, a step admits this part of a share, or as many as it lacks.
const PART: u32 = 8;

/// A worker looks again after this time, unless its step was the one that swept.
const LOOK_AGAIN: Micros = Micros::from_millis(1_000);

/// The part of the backlog that a step knows of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Admission {
    /// Whether tasks passed gates, so that more tasks may be ready.
    pub(super) some: bool,
    /// Whether tasks are left. `None`: the step did not look.
    left: Option<bool>,
    /// Whether the worker may step again at once for those: that slows down no other worker.
    freely: bool,
    /// Whether the worker had less than it wanted.
    lacks: bool,
}

impl<R: Rows> Work<'_, R> {
    /// Admits the share of this step, which finds `lack` ready tasks less than it may lease.
    ///
    /// A step that lacks tasks admits a whole share, and so does a heartbeat. While a worker holds tasks they admit part of
    /// one, and a step that does not sweep only tasks that its worker serves. Any other step admits that part if it sweeps,
    /// which bounds it by time.
    pub(super) fn admit_some(
        &mut self,
        step: &Step,
        served: &[Kind],
        lack: u32,
    ) -> Result<Admission, R::Error> {
        let lacks = lack > 0;
        let beats = step.want == 0 && step.complete.is_empty();
        if !lacks && !beats && !self.sweeps {
            return Ok(Admission { some: false, left: None, freely: false, lacks });
        }
        let is_busy = self.rows.shortest_busy_lease(self.lease_clock)?.is_some();
        let whole = !is_busy && (lacks || beats);
        let only = (is_busy && lacks && !self.sweeps).then_some(served);
        let part = (self.share / PART).max(2);
        let most = match only {
            _ if whole => self.share,
            Some(_) => lack.min(self.share).max(part),
            None => part,
        };
        let (some, left) = self.admit_page(most, only)?;
        Ok(Admission { some, left: Some(left), freely: whole || beats, lacks })
    }

    /// Admits up to `most` tasks, of these kinds if some are given: half of them due tasks and half added ones, and of one
    /// sort more if there are fewer of the other. Returns whether there were some, and whether some are left.
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
        // Each upstream of an added task counts as a task.
        let mut share = u32::try_from(most).unwrap_or(u32::MAX);
        for x in due {
            self.admit(&x, x.clone())?;
        }
        for x in added {
            if share == 0 {
                return Ok((some, true));
            }
            share -= 1;
            if !x.has_edges {
                self.admit(&x, x.clone())?;
            } else if !self.look_upstream(&x, &mut share)? {
                return Ok((some, true));
            }
        }
        Ok((some, left))
    }

    /// Whether the worker is to step again at once for tasks that are left: if they are all that there is to do, or
    /// if it was given tasks, so that it may be given more.
    pub(super) fn goes_on(&self, admission: &Admission, reply: &Stepped) -> bool {
        admission.left == Some(true) && (admission.freely || admission.lacks && !reply.leased.is_empty())
    }

    /// When a worker looks again that has less than it wanted.
    pub(super) fn looks_again(&mut self, admission: &Admission) -> Result<Option<Micros>, R::Error> {
        let is_left = match admission.left {
            Some(left) => left,
            None => !self.rows.added(1)?.is_empty(),
        };
        Ok(is_left.then_some(self.soon()))
    }

    /// In what time a worker looks again for tasks that are due and not admitted.
    pub(super) fn soon(&self) -> Micros {
        if self.sweeps { SWEEP } else { LOOK_AGAIN }
    }
}
