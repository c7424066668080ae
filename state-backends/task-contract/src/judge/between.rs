//! Checks the changes of tasks in one command, and the counts.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{Dump, Judge, ensure, is_cancelled};
use crate::{Change, Command, Counted, KEEP_IDS, Kind, State, Task, Verb};

impl Judge {
    pub(super) fn between(
        &mut self,
        now: Duration,
        before: &Dump,
        after: &Dump,
        by: Option<&Command>,
    ) -> Result<(), String> {
        for (id, stored) in &after.tasks {
            let x = &stored.task;
            if let Some(nominal) = &x.schedule
                && !before.tasks.contains_key(id)
            {
                let other = self.nominal.insert(nominal.at, *id);
                ensure!(
                    other.is_none_or(|other| other == *id),
                    "T8: two tasks of one instant: {other:?} and {id}"
                );
            }
            if !before.tasks.contains_key(id) {
                self.tasks += 1;
                self.gone.remove(id);
                if x.state != State::Purged {
                    *self.ever.entry((x.kind.clone(), Counted::EverAdded)).or_default() += 1;
                }
            }
            if x.state.is_ended() {
                self.ended.entry(*id).or_insert(now);
            } else {
                self.ended.remove(id);
            }
        }
        for (id, stored) in &before.tasks {
            let was = &stored.task;
            let Some(x) = after.task(*id) else {
                self.goes(now, was, before, after)?;
                continue;
            };
            if Arc::ptr_eq(stored, &after.tasks[id]) {
                continue;
            }
            ensure!(
                x.token >= was.token,
                "T2: the token of task {id} falls from {} to {}",
                was.token,
                x.token
            );
            ensure!(x.generation >= was.generation, "T3: the life of task {id} falls");
            let stays = !was.state.is_ended()
                || x.generation > was.generation
                || x.state == was.state
                || x.state == State::Purged;
            ensure!(stays, "T3: task {id} was {} and is {}", was.state, x.state);
            ensure!(
                !is_cancelled(was) || is_cancelled(x) || x.state == State::Cancelled,
                "T9: task {id} was cancelled while it ran, and is {}",
                x.state
            );
            let is_replaced = matches!(by, Some(Command::Add(_))) && x != was;
            let is_reordered = matches!(
                by,
                Some(Command::Change(Change::Tasks(change)))
                    if matches!(change.verb, Verb::Delay(_) | Verb::Priority(_))
            );
            ensure!(
                x.due == was.due || is_replaced || is_reordered,
                "T4: task {id} was due at {} and is at {}",
                was.due,
                x.due
            );
            ensure!(x.added == was.added, "T4: task {id} was added at another time");
            ensure!(x.position == was.position, "T4: task {id} has another position than it was added at");
            let is_early = was.state == State::Scheduled
                && matches!(x.state, State::Ready | State::Blocked | State::Leased)
                && was.not_before > x.not_before
                && !matches!(by, Some(Command::Change(_)))
                && !self.rolled_back;
            ensure!(!is_early, "T7: task {id} runs before its time");
            if self.only_outages && !was.state.is_ended() {
                let died = x.error.as_ref().is_some_and(|error| error.contains("was not heard of"));
                ensure!(!died, "T3: a store out of reach cost a live worker its task {id}");
            }
        }
        Ok(())
    }

    fn goes(&mut self, now: Duration, was: &Task, before: &Dump, after: &Dump) -> Result<(), String> {
        let id = was.id;
        ensure!(was.state.is_ended() && was.notified, "T1: task {id} was {}, and is gone", was.state);
        if let Some(&ended) = self.ended.get(&id)
            && !self.rolled_back
        {
            // A clock step forward counts for half of `KEEP_IDS` at most.
            let kept = now.saturating_sub(ended) + KEEP_IDS.to_duration() / 2 + Duration::from_secs(30);
            ensure!(kept >= KEEP_IDS.to_duration(), "T1: the id of task {id} was kept for {kept:?} only");
        }
        let downs = before.tasks.get(&id).map(|stored| stored.downstreams.as_slice()).unwrap_or_default();
        let left = downs.iter().find(|edge| after.tasks.contains_key(&edge.down));
        ensure!(left.is_none(), "T7: task {id} is gone before its downstream {left:?}");
        self.gone.insert(id);
        Ok(())
    }

    pub(super) fn counts(&self, after: &Dump) -> Result<(), String> {
        let mut there: BTreeMap<(&Kind, Counted), u64> = BTreeMap::new();
        for x in after.rows() {
            *there.entry((&x.kind, Counted::Now(x.state))).or_default() += 1;
        }
        let now = after.counts.iter().filter(|((_, counted), _)| matches!(counted, Counted::Now(_)));
        let counted: BTreeMap<_, _> = now.map(|((kind, counted), n)| ((kind, *counted), *n)).collect();
        ensure!(there == counted, "T10: {counted:?} are counted, and {there:?} are there");
        if self.rolled_back {
            return Ok(());
        }
        for counted in [Counted::EverAdded, Counted::EverLeased] {
            let stored: u64 = after.counts.iter().filter(|((_, of), _)| *of == counted).map(|(_, n)| n).sum();
            let ever: u64 = self.ever.iter().filter(|((_, of), _)| *of == counted).map(|(_, n)| n).sum();
            ensure!(stored == ever, "T10: {counted} counts {stored}, and there were {ever}");
        }
        Ok(())
    }
}
