//! Schedules: each nominal instant makes its tasks exactly once, whichever worker fires it.

use super::{Work, refused};
use crate::{Add, Fire, Fired, NewSchedule, Nominal, Overlap, Refusal, Reply, Rows, Schedule, Task, TaskId};

impl<R: Rows> Work<'_, R> {
    /// Compare-and-set on the next or the kept instant.
    pub(super) fn fire(&mut self, fire: &Fire) -> Result<Reply, R::Error> {
        let Some(mut schedule) = self.rows.schedule(&fire.schedule)? else {
            return Ok(Reply::Fired(Fired::Stale));
        };
        let is_kept = schedule.kept == Some(fire.from);
        let is_next = schedule.next == Some(fire.from) && fire.from <= self.now;
        if schedule.revision != fire.revision || schedule.paused || !(is_kept || is_next) {
            return Ok(Reply::Fired(Fired::Stale));
        }
        let runs = schedule.overlap != Overlap::Allow && self.last_runs(&schedule)?;
        let fired = match schedule.overlap {
            Overlap::Skip if runs => Fired::Skipped,
            Overlap::Keep if runs => {
                schedule.kept = Some(fire.from);
                schedule.may_follow = false;
                Fired::Kept
            }
            _ => Fired::Made,
        };
        if fired == Fired::Made {
            for (n, (at, new)) in fire.made.iter().enumerate() {
                if fire.made.get(n + 1).is_some_and(|(next, _)| next == at) {
                    continue;
                }
                let id = TaskId::of_schedule(schedule.incarnation, &schedule.name, *at);
                if new.id != id {
                    return Err(refused(Refusal::WrongId(new.id, id, schedule.name)));
                }
            }
            let tasks = fire.made.iter().map(|(_, task)| task.clone()).collect();
            let nominal: Vec<Nominal> =
                fire.made.iter().map(|&(at, _)| Nominal { schedule: schedule.name.clone(), at }).collect();
            let added = self.add_all(&Add { tasks, ..Add::default() }, &nominal)?;
            schedule.last = added.last().map(|added| added.id()).or(schedule.last);
        }
        // The kept instant is made now, or superseded by this later one.
        if fired == Fired::Made {
            schedule.kept = None;
            schedule.may_follow = false;
        }
        if !is_kept {
            schedule.next = fire.next;
        }
        self.rows.put_schedule(&schedule)?;
        Ok(Reply::Fired(fired))
    }

    pub(super) fn last_runs(&mut self, schedule: &Schedule) -> Result<bool, R::Error> {
        let last = schedule.last.map(|last| self.rows.task(last)).transpose()?.flatten();
        Ok(last.is_some_and(|last| !last.state.is_ended()))
    }

    pub(super) fn release_kept_instant(&mut self, ended: &Task) -> Result<(), R::Error> {
        let Some(nominal) = &ended.schedule else { return Ok(()) };
        if let Some(schedule) = self.rows.schedule(&nominal.schedule)?
            && schedule.last == Some(ended.id)
            && schedule.kept.is_some()
        {
            self.rows.put_schedule(&Schedule { may_follow: true, ..schedule })?;
            self.notifies = true;
        }
        Ok(())
    }

    pub(super) fn set_schedule(&mut self, new: &NewSchedule) -> Result<(), R::Error> {
        let was = self.rows.schedule(&new.name)?;
        let made = Schedule {
            name: new.name.clone(),
            revision: was.as_ref().map_or(1, |was| was.revision + 1),
            incarnation: was.as_ref().map_or(self.now, |was| was.incarnation),
            definition: new.definition.clone(),
            next: new.next,
            paused: new.paused,
            overlap: new.overlap,
            last: was.as_ref().and_then(|was| was.last),
            kept: None,
            may_follow: false,
        };
        self.notifies = true;
        self.rows.put_schedule(&made)
    }
}
