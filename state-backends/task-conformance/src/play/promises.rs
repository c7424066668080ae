//! What must hold of all that is stored, after every command.

use std::collections::{BTreeMap, BTreeSet};

use interval_queue_task_contract::{
    Edge, EdgeState, Overlap, State, Step, Stepped, Stored, Task, TaskId, Until,
};

use super::{
    judge::{Judge, ensure},
    picture::Picture,
};

impl Judge {
    pub(super) fn rows(&self, after: &Picture) -> Result<(), String> {
        let mut names = BTreeMap::new();
        for stored in after.tasks.values() {
            self.task(stored)?;
            for edge in &stored.upstreams {
                self.edge(edge, after)?;
            }
            let x = &stored.task;
            if let Some(unique) = x.unique.as_ref().filter(|_| x.holds_name) {
                let other = names.insert(&unique.name, x.id);
                ensure!(other.is_none(), "unique: {} is the name of {other:?} and {}", unique.name, x.id);
            }
        }
        if self.overlap != Overlap::Allow && !self.was_rolled_back() {
            let runs = after.rows().filter(|x| x.schedule.is_some() && x.life == 0 && !x.state.is_ended());
            let runs: Vec<_> = runs.map(|x| x.id).collect();
            ensure!(runs.len() <= 1, "T8: tasks of one schedule overlap: {runs:?}");
        }
        for schedule in &after.schedules {
            let last = schedule.last.and_then(|last| after.task(last));
            let waits = last.is_some_and(|last| !last.state.is_ended());
            ensure!(
                schedule.kept.is_none() || schedule.may_follow || waits || self.was_rolled_back(),
                "T8: an instant is kept for a task that has ended: {schedule:?}"
            );
        }
        Ok(())
    }

    fn task(&self, stored: &Stored) -> Result<(), String> {
        use State::{Keyed, Leased, Ready, Scheduled, Waiting};
        let x = &stored.task;
        let id = x.id;
        let is_ended = x.state.is_ended();
        ensure!(
            x.state != Leased || x.worker.is_some() && x.leased.is_some(),
            "T2: {id} is leased to nobody"
        );
        ensure!(is_ended == x.ended.is_some(), "T3: {id} is {} and ended at {:?}", x.state, x.ended);
        ensure!(is_ended || !x.told && !x.wanted, "T7: {id} is {} and its end is told", x.state);
        let holds = x.holds_name || x.holds_key || x.parked || x.stop.is_some();
        ensure!(!is_ended || !holds, "T6: {id} has ended and holds something: {x:?}");
        let most = x.policy.map_or(u32::MAX, |policy| policy.max_attempts);
        let has_more = x.failures < most || is_ended && x.failures <= most;
        ensure!(has_more, "T3: {id} is {} after {} failures of {most}", x.state, x.failures);

        let pending = stored.upstreams.iter().any(|edge| edge.state.is_pending());
        if !self.was_rolled_back() {
            ensure!(x.state != Waiting || pending, "T7: {id} waits for nothing");
            ensure!(
                !pending || !matches!(x.state, Scheduled | Keyed | Ready | Leased),
                "T7: {id} is {} too early",
                x.state
            );
            let cut = stored.upstreams.iter().find(|edge| edge.state == EdgeState::Cut);
            let goes_on = matches!(x.state, Waiting | Scheduled | Keyed | Ready | Leased);
            ensure!(cut.is_none() || !goes_on, "T7: {id} is {} in spite of {cut:?}", x.state);
            let told =
                stored.downstreams.iter().find(|edge| edge.is_untold(x.life) && edge.state != EdgeState::New);
            ensure!(!x.told || told.is_none(), "T7: the end of {id} is told to all, and not to {told:?}");
        }

        let may_hold = matches!(x.state, Ready | Leased) || x.ordered && x.state == Scheduled;
        ensure!(!x.holds_key || x.key.is_some() && may_hold, "T6: {id} is {} and holds a key", x.state);
        let must_hold = x.key.is_some() && matches!(x.state, Ready | Leased);
        ensure!(!must_hold || x.holds_key, "T6: {id} is {} and holds no place of its key", x.state);
        ensure!(!x.parked || x.state == Keyed, "{id} is {} and parked", x.state);

        if let Some(unique) = &x.unique {
            let lost = unique.until == Until::Ended && !is_ended && x.life == 0 && !x.holds_name;
            ensure!(!lost, "unique: {id} is {} and has lost its name", x.state);
            let kept = unique.until == Until::Leased && x.state == Leased && x.holds_name;
            ensure!(!kept, "unique: {id} is leased and keeps its name");
        }
        Ok(())
    }

    fn edge(&self, edge: &Edge, after: &Picture) -> Result<(), String> {
        let up = after.task(edge.up).filter(|up| up.state != State::Purged);
        let Some(up) = up else { return Err(format!("T7: an input is gone: {edge:?}")) };
        if up.life > edge.life || edge.state.is_pending() || self.was_rolled_back() {
            return Ok(());
        }
        let is_right = match edge.state {
            EdgeState::Met => up.state == State::Done,
            _ => matches!(up.state, State::Failed | State::Cancelled),
        };
        ensure!(is_right, "T7: {edge:?}, and the upstream is {}", up.state);
        Ok(())
    }

    /// The limits, and who has a place.
    pub(super) fn keys(&self, before: &Picture, after: &Picture) -> Result<(), String> {
        if self.was_rolled_back() {
            return Ok(());
        }
        if let Some(limit) = after.settings.max_running {
            let (was, is) = (before.running(), after.running());
            ensure!(is <= was.max(limit as usize), "T6: {is} run, and {limit} may");
        }
        let keys: BTreeSet<_> = after.rows().filter_map(|x| x.key.as_ref()).collect();
        for key in keys {
            let of_key = |picture: &Picture, is: fn(&Task) -> bool| -> Vec<Task> {
                picture.rows().filter(|x| x.key.as_ref() == Some(key) && is(x)).cloned().collect()
            };
            let limit =
                self.key_limits.get(key.as_str()).copied().unwrap_or(after.settings.key_limit) as usize;
            let leased = |picture| of_key(picture, |x| x.state == State::Leased).len();
            let (was, is) = (leased(before), leased(after));
            ensure!(is <= was.max(limit), "T6: {is} of key {key} run, and {limit} may");
            let held = of_key(after, |x| x.holds_key);
            let leased = of_key(after, |x| x.state == State::Leased);
            let alone = leased.len() < 2 || leased.iter().all(|x| !x.ordered) || !self.is_level;
            ensure!(alone, "T6: an ordered one of key {key} does not run alone");
            let in_the_way = held.iter().find(|x| x.state == State::Ready && !after.is_open(&x.kind));
            ensure!(
                in_the_way.is_none() || !self.is_level,
                "T6: {in_the_way:?} holds key {key}, and nobody may run its kind"
            );
            let parked = of_key(after, |x| x.parked);
            let kept_out = parked.iter().find(|x| after.is_open(&x.kind));
            ensure!(kept_out.is_none() || !self.is_level, "T6: {kept_out:?} is kept out of its line");
            let line = of_key(after, |x| x.state == State::Keyed && !x.parked);
            // Those of a closed kind are taken out of the line when they are its first.
            if !self.is_level || line.iter().any(|x| !after.is_open(&x.kind)) {
                continue;
            }
            let last = held.iter().filter(|x| x.state == State::Ready).max_by_key(|x| x.line());
            ensure!(
                held.len() <= limit || last.is_none(),
                "T6: {} hold key {key}, and {limit} may",
                held.len()
            );
            let Some(first) = line.iter().min_by_key(|x| x.line()) else { continue };
            let is_alone = limit > 1 && (first.ordered || held.iter().any(|x| x.ordered));
            let limit = if is_alone { 1 } else { limit };
            ensure!(held.len() >= limit, "T6: key {key} has a free place, and {} waits: {held:?}", first.id);
            let overtakes = |last: &&Task| {
                !(last.ordered && last.leased.is_some()) && last.line() > first.line() && held.len() == limit
            };
            ensure!(
                last.filter(overtakes).is_none(),
                "T4: {} waits for key {key}, which the less urgent {last:?} has",
                first.id
            );
        }
        Ok(())
    }

    /// After a step: what was given is the most urgent, and nothing is left that could go on.
    pub(super) fn order(&self, after: &Picture, step: &Step, stepped: &Stepped) -> Result<(), String> {
        if stepped.restate || self.was_rolled_back() {
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
            let is_right = next.order() > last.task.order() || !self.is_level;
            ensure!(is_right, "T4: {} was leased before the more urgent {}", last.task.id, next.id);
        }
        let told: Vec<TaskId> = stepped.leased.iter().map(|leased| leased.task.id).collect();
        let sorted = stepped.leased.is_sorted_by_key(|leased| leased.task.order());
        ensure!(sorted, "T4: leased in another order: {told:?}");
        if stepped.more {
            return Ok(());
        }
        let is_full = after.settings.max_running.is_some_and(|limit| after.running() >= limit as usize);
        let has_room = told.len() < step.want as usize && !after.paused && !is_full;
        ensure!(!has_room || next.is_none(), "T3: {next:?} is ready, and a worker with room is not given it");
        let left = after.rows().find(|x| x.state == State::Added || x.state.is_ended() && !x.told);
        ensure!(left.is_none(), "T7: nothing is left to do, and nobody looked at {left:?}");
        Ok(())
    }
}
