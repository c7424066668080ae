//! What a step was given, and what it left.

use super::{Judge, Picture, ensure};
use crate::{State, Step, Stepped, Task, TaskId};

impl Judge {
    /// After a step: what was given is the most urgent, and nothing is left that could go on.
    pub(super) fn order(&self, after: &Picture, step: &Step, stepped: &Stepped) -> Result<(), String> {
        if stepped.restate || self.rolled_back {
            return Ok(());
        }
        let is_paused = |x: &Task| after.kinds.get(&x.kind).is_some_and(|row| row.paused);
        let limit_of = |x: &Task| {
            let key = x.key.as_ref()?;
            Some(self.key_limits.get(key.as_str()).copied().unwrap_or(after.settings.key_limit) as usize)
        };
        let is_blocked = |x: &Task| {
            let running = after.rows().filter(|y| y.key == x.key && y.state == State::Leased).count();
            limit_of(x).is_some_and(|limit| running >= limit)
        };
        let offered = |x: &&Task| {
            x.state == State::Ready
                && step.kinds.contains(&x.kind)
                && !is_paused(x)
                && step.at_least.is_none_or(|least| x.priority >= least)
                && !is_blocked(x)
        };
        let next = after.rows().filter(offered).min_by_key(|x| x.order());
        let last = stepped.leased.iter().max_by_key(|leased| leased.task.order());
        if let (Some(next), Some(last)) = (next, last) {
            let is_right = next.order() > last.task.order() || self.is_uneven;
            ensure!(is_right, "T4: {} was leased before the more urgent {}", last.task.id, next.id);
        }
        let told: Vec<TaskId> = stepped.leased.iter().map(|leased| leased.task.id).collect();
        let sorted = stepped.leased.is_sorted_by_key(|leased| leased.task.order());
        ensure!(sorted, "T4: leased in another order: {told:?}");
        let mut room = step.room;
        for leased in &stepped.leased {
            let fits = room.is_none_or(|room| room.fits(leased.task.weight));
            ensure!(fits, "T6: {} was leased to a worker without room for it", leased.task.id);
            room = room.map(|room| room.after(leased.task.weight));
        }
        if stepped.more {
            return Ok(());
        }
        let is_full = after.settings.max_running.is_some_and(|limit| after.running() >= limit as usize);
        let has_room = told.len() < step.want as usize && !after.paused && !is_full;
        let next = next.filter(|next| room.is_none_or(|room| room.fits(next.weight)));
        ensure!(!has_room || next.is_none(), "T3: {next:?} is ready, and a worker with room is not given it");
        let left = after.rows().find(|x| x.state == State::Added || x.state.is_ended() && !x.told);
        ensure!(left.is_none(), "T7: nothing is left to do, and nobody looked at {left:?}");
        Ok(())
    }
}
