//! Checks all that is stored, after every command.

use std::{collections::BTreeMap, sync::Arc};

use super::{Dump, Judge, ensure};
use crate::{Edge, EdgeState, Overlap, State, Stored, Until};

impl Judge {
    pub(super) fn rows(&self, before: &Dump, after: &Dump) -> Result<(), String> {
        let mut names = BTreeMap::new();
        for (id, stored) in &after.tasks {
            if before.tasks.get(id).is_none_or(|was| !Arc::ptr_eq(was, stored)) {
                self.task(stored)?;
            }
            for edge in &stored.upstreams {
                self.edge(edge, after)?;
            }
            let x = &stored.task;
            if let Some(unique) = x.unique.as_ref().filter(|_| x.holds_name) {
                let other = names.insert(&unique.name, x.id);
                ensure!(other.is_none(), "T1: unique: {} is the name of {other:?} and {}", unique.name, x.id);
            }
        }
        if self.overlap != Overlap::Allow && !self.rolled_back {
            let runs =
                after.rows().filter(|x| x.schedule.is_some() && x.generation == 0 && !x.state.is_ended());
            let runs: Vec<_> = runs.map(|x| x.id).collect();
            ensure!(runs.len() <= 1, "T8: tasks of one schedule overlap: {runs:?}");
        }
        for schedule in &after.schedules {
            let last = schedule.last.and_then(|last| after.task(last));
            // An end within a transaction counts, and releases the key, only when it was notified.
            let waits = last.is_some_and(|last| !last.state.is_ended() || !last.notified);
            ensure!(
                schedule.kept.is_none() || schedule.may_follow || waits || self.rolled_back,
                "T8: an instant is kept for a task that has ended: {schedule:?}"
            );
        }
        Ok(())
    }

    fn task(&self, stored: &Stored) -> Result<(), String> {
        use State::{Blocked, Leased, Ready, Scheduled, Waiting};
        let x = &stored.task;
        let id = x.id;
        let is_ended = x.state.is_ended();
        ensure!(
            x.state != Leased || x.worker.is_some() && x.leased.is_some(),
            "T2: {id} is leased to nobody"
        );
        ensure!(is_ended == x.ended.is_some(), "T3: {id} is {} and ended at {:?}", x.state, x.ended);
        ensure!(is_ended || !x.notified && !x.retained, "T7: {id} is {} and its end is notified", x.state);
        let holds = x.holds_name || x.holds_key && x.notified || x.unserved || x.stop.is_some();
        ensure!(!is_ended || !holds, "T6: {id} has ended and holds something: {x:?}");
        let most = x.policy.max_attempts.unwrap_or(u32::MAX);
        let has_more = x.failures < most || is_ended && x.failures <= most;
        ensure!(has_more, "T3: {id} is {} after {} failures of {most}", x.state, x.failures);

        let pending = stored.upstreams.iter().any(|edge| edge.state.is_pending());
        if !self.rolled_back {
            ensure!(x.state != Waiting || pending, "T7: {id} waits for nothing");
            ensure!(
                !pending || !matches!(x.state, Scheduled | Blocked | Ready | Leased),
                "T7: {id} is {} too early",
                x.state
            );
            let cut = stored.upstreams.iter().find(|edge| edge.state == EdgeState::Cut);
            let goes_on = matches!(x.state, Waiting | Scheduled | Blocked | Ready | Leased);
            ensure!(cut.is_none() || !goes_on, "T7: {id} is {} in spite of {cut:?}", x.state);
            let missed = stored
                .downstreams
                .iter()
                .find(|edge| edge.is_unnotified(x.generation) && edge.state != EdgeState::New);
            ensure!(
                !x.notified || missed.is_none(),
                "T7: the end of {id} was notified to all, but not to {missed:?}"
            );
        }

        let may_hold = matches!(x.state, Ready | Leased) || x.ordered && x.state == Scheduled || is_ended;
        ensure!(!x.holds_key || x.key.is_some() && may_hold, "T6: {id} is {} and holds a key", x.state);
        let must_hold = x.key.is_some() && matches!(x.state, Ready | Leased);
        ensure!(!must_hold || x.holds_key, "T6: {id} is {} and holds no permit of its key", x.state);
        ensure!(!x.unserved || x.state == Blocked, "T6: {id} is {} and unserved", x.state);

        if let Some(unique) = &x.unique {
            let is_kept = x.generation == 0 || !self.rolled_back;
            let lost = unique.until == Until::Ended && !is_ended && is_kept && !x.holds_name;
            ensure!(!lost, "T1: unique: {id} is {} and has lost its name", x.state);
            let kept = unique.until == Until::Leased && x.state == Leased && x.holds_name;
            ensure!(!kept, "T1: unique: {id} is leased and keeps its name");
        }
        Ok(())
    }

    fn edge(&self, edge: &Edge, after: &Dump) -> Result<(), String> {
        let up = after.task(edge.up).filter(|up| up.state != State::Purged);
        let Some(up) = up else { return Err(format!("T7: an input is gone: {edge:?}")) };
        if up.generation > edge.generation || edge.state.is_pending() || self.rolled_back {
            return Ok(());
        }
        let is_right = match edge.state {
            EdgeState::Met => up.state == State::Done,
            _ => matches!(up.state, State::Failed | State::Cancelled),
        };
        ensure!(is_right, "T7: {edge:?}, and the upstream is {}", up.state);
        Ok(())
    }
}
