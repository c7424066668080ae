//! Checks which tasks a step leased, and which it left.

use interval_queue_contract::Micros;

use super::{Dump, Judge, Outcome, ensure};
use crate::{Added, Command, Leased, Reply, State, Step, Stepped, Task, TaskId};

/// Of a worker that lacks tasks while there is a backlog.
const POLL_INTERVAL: Micros = Micros::from_millis(1_000);

/// From commands alone; only the order of adding breaks a tie.
pub(super) type Rank = (i64, Micros, u32, TaskId);

impl Judge {
    /// The leased tasks are the most urgent, and none is left that could go on.
    pub(super) fn order(&self, after: &Dump, step: &Step, stepped: &Stepped) -> Result<(), String> {
        if stepped.resync || self.rolled_back {
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
        let next = after.rows().filter(offered).min_by_key(|x| self.rank(x));
        let last = stepped.leased.iter().max_by_key(|leased| self.rank(&leased.task));
        if let (Some(next), Some(last)) = (next, last) {
            let is_right = self.rank(next) > self.rank(&last.task) || self.needs_rebalancing;
            ensure!(is_right, "T4: {} was leased before the more urgent {}", last.task.id, next.id);
        }
        let leased: Vec<TaskId> = stepped.leased.iter().map(|leased| leased.task.id).collect();
        let sorted = stepped.leased.is_sorted_by_key(|leased| self.rank(&leased.task));
        ensure!(sorted, "T4: leased in another order: {leased:?}");
        ensure!(leased.len() <= step.limit() as usize, "T6: leased more than requested: {leased:?}");
        for (n, Leased { task, policy, .. }) in stepped.leased.iter().enumerate() {
            let is_ahead = n >= step.want as usize;
            let may_wait = task.key.is_none() && task.failures + task.returns == 0 && policy.max_attempts > 1;
            ensure!(!is_ahead || task.prefetched && may_wait, "T3: {} waits in hand", task.id);
            ensure!(!is_ahead || stepped.may_prefetch, "T6, T9: {} was prefetched", task.id);
        }
        let mut free = step.free_capacity;
        for leased in &stepped.leased {
            let fits = free.is_none_or(|free| free.fits(leased.task.weight));
            ensure!(fits, "T6: {} was leased to a worker without free capacity for it", leased.task.id);
            free = free.map(|free| free.after(leased.task.weight));
        }
        if stepped.more {
            return Ok(());
        }
        let is_full = after.settings.max_running.is_some_and(|limit| after.running() >= limit as usize);
        let has_room = leased.len() < step.want as usize && !after.paused && !is_full;
        let next = next.filter(|next| free.is_none_or(|free| free.fits(next.weight)));
        ensure!(
            !has_room || next.is_none(),
            "T3: {next:?} is ready, and a worker with free capacity does not get it"
        );
        let unnotified = after.rows().find(|x| x.state.is_ended() && !x.notified);
        ensure!(unnotified.is_none(), "T7: nothing is left to do, and {unnotified:?} was not notified");
        // A backlog may stay if the worker got all that it wanted, or polls again soon.
        let has_all = leased.len() >= step.want as usize && (step.want > 0 || !step.complete.is_empty());
        let left = after.rows().find(|x| x.state == State::Added);
        let comes_back = stepped.next.is_some_and(|next| next <= POLL_INTERVAL);
        ensure!(left.is_none() || has_all || comes_back, "T3: no worker polls again to admit {left:?}");
        Ok(())
    }

    pub(super) fn place(&mut self, before: &Dump, command: &Command, outcome: &Outcome) {
        let is_new = |id: &TaskId| !before.tasks.contains_key(id);
        match (command, outcome) {
            (Command::Add(add), Ok(Reply::Added(added))) => {
                let new = (add.sequence..).zip(added);
                self.positions.extend(new.filter_map(|(position, added)| match added {
                    Added::New(id) => Some((*id, position)),
                    _ => None,
                }));
            }
            (Command::Fire(fire), Ok(_)) => {
                let made = (0..).zip(&fire.made).map(|(position, (_, task))| (task.id, position));
                self.positions.extend(made.filter(|(id, _)| is_new(id)));
            }
            _ => {}
        }
    }

    pub(super) fn rank(&self, x: &Task) -> Rank {
        (x.due, x.added, self.positions.get(&x.id).copied().unwrap_or(x.position), x.id)
    }

    pub(super) fn line(&self, x: &Task) -> Rank {
        let rank = self.rank(x);
        if x.ordered { (x.added.get().cast_signed(), x.added, rank.2, rank.3) } else { rank }
    }
}
