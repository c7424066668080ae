//! Holds what is known of a scene against the promises.

use std::collections::HashMap;

use interval_queue_tasks::{State, TaskId};

use crate::chaos_facts::{Facts, Ran};

/// How long after its lease a run begins at the latest, in microseconds: its worker looks at the rate before it.
const IN_HAND: u64 = 1_000_000;

/// How much of a delay between two instants the host brought.
type Explained<'a> = &'a dyn Fn(u64, u64) -> u64;

impl Facts {
    /// All that does not hold.
    pub(crate) fn broken(&self, explained: Explained<'_>) -> Vec<String> {
        let mut broken = Vec::new();
        broken.extend(self.not_kept());
        broken.extend(self.twice());
        broken.extend(self.beside(explained, |ran| Some(ran.run.0.to_string())));
        broken.extend(self.beside(explained, |ran| self.made.get(&ran.run.0)?.key.clone()));
        broken.extend(self.ends());
        broken.extend(self.too_early());
        broken
    }

    fn may_have_forgotten(&self, at: u64) -> bool {
        self.case.losses.iter().any(|(_, over)| at < *over)
    }

    /// T1: what was acknowledged is there; T3: and has ended.
    fn not_kept(&self) -> Vec<String> {
        let gone = self
            .acknowledged
            .iter()
            .filter(|(id, at)| !self.stored.contains_key(id) && !self.may_have_forgotten(**at));
        let gone = gone.map(|(id, _)| format!("T1: task {id} was acknowledged, and is gone"));
        let stays = self.stored.values().filter(|stored| !stored.task.state.is_ended());
        let stays =
            stays.map(|stored| format!("T3: task {} is {} in the end", stored.task.id, stored.task.state));
        let not_done = self.stored.values().filter(|stored| {
            let task = &stored.task;
            let may_fail = self.made.get(&task.id).is_some_and(|made| made.once || made.up.is_some());
            task.state != State::Done && !may_fail && !self.cancelled.contains(&task.id)
        });
        let not_done = not_done.map(|stored| {
            format!("T3: task {} is {}, and nothing was wrong with it", stored.task.id, stored.task.state)
        });
        gone.chain(stays).chain(not_done).collect()
    }

    /// T2: no token twice; T3: at most once is at most once.
    fn twice(&self) -> Vec<String> {
        let (mut tokens, mut once) = (HashMap::new(), HashMap::new());
        let mut broken = Vec::new();
        for ran in &self.runs {
            if let Some(other) = tokens.insert(ran.run, ran) {
                broken.push(format!("T2: one token, two runs: {other:?} and {ran:?}"));
            }
            let is_once = self.made.get(&ran.run.0).is_some_and(|made| made.once);
            if let Some(other) = once.insert(ran.run.0, ran).filter(|_| is_once)
                && !self.may_have_forgotten(other.begun)
            {
                broken.push(format!("T3: at most once, and two runs: {other:?} and {ran:?}"));
            }
        }
        broken
    }

    /// T2, T6: of those with something in common one runs at a time.
    fn beside(&self, explained: Explained<'_>, common: impl Fn(&Ran) -> Option<String>) -> Vec<String> {
        let mut last: HashMap<String, &Ran> = HashMap::new();
        let mut broken = Vec::new();
        for ran in &self.runs {
            let Some(common) = common(ran) else { continue };
            let Some(before) = last.get(&common).copied() else {
                last.insert(common, ran);
                continue;
            };
            let is_excused = before.over <= ran.begun
                || self.case.was_frozen(before.who, before.begun, ran.begun)
                || self.was_forgotten(before, ran)
                || before.over != u64::MAX && before.over - ran.begun <= explained(before.begun, before.over);
            if !is_excused {
                broken.push(format!("T2, T6: of {common} two at a time: {before:?} and {ran:?}"));
            }
            if ran.over > before.over || self.was_forgotten(before, ran) {
                last.insert(common, ran);
            }
        }
        broken
    }

    /// Whether the store that leased the one had forgotten the other, which was leased before it began.
    fn was_forgotten(&self, before: &Ran, ran: &Ran) -> bool {
        self.case.losses.iter().any(|(begun, over)| before.begun < *over + IN_HAND && *begun < ran.begun)
    }

    /// T2: what counts is the end of the run whose token is in force, and who says another one is told.
    fn ends(&self) -> Vec<String> {
        let mut done: HashMap<TaskId, Vec<&Ran>> = HashMap::new();
        for ran in self.runs.iter().filter(|ran| ran.how.as_deref() == Some("done")) {
            done.entry(ran.run.0).or_default().push(ran);
        }
        let mut broken = Vec::new();
        for stored in self.stored.values().filter(|stored| stored.task.state == State::Done) {
            let task = &stored.task;
            let all = done.remove(&task.id).unwrap_or_default();
            if !all.iter().any(|ran| ran.run.1 == task.token) {
                broken.push(format!(
                    "T2: task {} is done at {}, and no such run was: {all:?}",
                    task.id, task.token
                ));
            }
            let others = all.into_iter().filter(|ran| ran.run.1 != task.token);
            broken.extend(others.filter_map(|ran| self.untold(ran)));
        }
        // Those that are gone or cancelled.
        broken.extend(done.into_values().flatten().filter_map(|ran| self.untold(ran)));
        broken
    }

    /// A run was done and does not count, and its worker was not told so, though it should have been.
    fn untold(&self, ran: &Ran) -> Option<String> {
        // A program logs nothing of it, nor who is killed; and a cancelled task may be done and cancelled at once.
        let is_out = self.case.is_program(ran.who)
            || self.case.killed(ran.who).is_some()
            || self.cancelled.contains(&ran.run.0)
            || self.may_have_forgotten(ran.over);
        let is_told = self.lost.contains(&(ran.who, ran.run)) || self.refused.contains(&(ran.who, ran.run.0));
        (!is_out && !is_told)
            .then(|| format!("T2: the end of a run was refused, and nobody was told: {ran:?}"))
    }

    /// T7: a task begins after the one that it waits for was done.
    fn too_early(&self) -> Vec<String> {
        let mut done: HashMap<TaskId, u64> = HashMap::new();
        for ran in self.runs.iter().filter(|ran| ran.how.as_deref() == Some("done")) {
            let at = done.entry(ran.run.0).or_insert(ran.over);
            *at = ran.over.min(*at);
        }
        let is_early = |ran: &&Ran| {
            let up = self.made.get(&ran.run.0).and_then(|made| made.up);
            up.is_some_and(|up| done.get(&up).is_none_or(|done| *done > ran.begun))
        };
        self.runs.iter().filter(is_early).map(|ran| format!("T7: it begins too early: {ran:?}")).collect()
    }
}
