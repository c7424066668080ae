//! Holds what was logged, and what is stored in the end, against the promises.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use interval_queue_tasks::{State, Stored, TaskId};

use crate::{
    harm::{Injection, Part},
    log::{Line, Made, Run, Said},
    process::Scene,
};

/// What the test did to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Killed,
    Frozen,
    Thawed,
}

/// One time that it did so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) at: u64,
    pub(crate) who: usize,
    pub(crate) what: What,
}

/// What was done in a scene.
#[derive(Debug, Default)]
pub(crate) struct Case {
    pub(crate) parts: HashMap<usize, Part>,
    pub(crate) events: Vec<Event>,
    pub(crate) injections: Vec<Injection>,
    /// Between which instants the store was made to forget something.
    pub(crate) losses: Vec<(u64, u64)>,
}

impl Case {
    fn when(&self, who: usize, what: What) -> impl Iterator<Item = u64> {
        self.events.iter().filter(move |event| event.who == who && event.what == what).map(|event| event.at)
    }

    pub(crate) fn killed(&self, who: usize) -> Option<u64> {
        self.when(who, What::Killed).next()
    }

    fn was_frozen(&self, who: usize, from: u64, to: u64) -> bool {
        let thawed = self.when(who, What::Thawed).chain([u64::MAX]);
        self.when(who, What::Frozen).zip(thawed).any(|(frozen, thawed)| frozen <= to && from <= thawed)
    }

    fn is_program(&self, who: usize) -> bool {
        self.parts.get(&who) == Some(&Part::Program)
    }
}

/// A run as it was logged.
#[derive(Clone, Debug)]
pub(crate) struct Ran {
    pub(crate) run: Run,
    pub(crate) who: usize,
    pub(crate) begun: u64,
    /// When it ended, was given up or was killed.
    pub(crate) over: u64,
    /// How it ended, if it did by itself.
    pub(crate) how: Option<String>,
}

/// All that is known of a scene.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) case: Case,
    /// In the order of time.
    pub(crate) runs: Vec<Ran>,
    pub(crate) made: BTreeMap<TaskId, Made>,
    acknowledged: BTreeMap<TaskId, u64>,
    cancelled: BTreeSet<TaskId>,
    lost: HashSet<(usize, Run)>,
    pub(crate) stored: BTreeMap<TaskId, Stored>,
}

impl Facts {
    pub(crate) fn new(case: Case, mut lines: Vec<Line>, stored: BTreeMap<TaskId, Stored>) -> Self {
        lines.sort_by_key(|line| line.at);
        let mut facts = Self {
            case,
            runs: Vec::new(),
            made: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            lost: HashSet::new(),
            stored,
        };
        let mut live: HashMap<(usize, Run), usize> = HashMap::new();
        for Line { at, who, said } in lines {
            match said {
                Said::Begun(run) => {
                    live.insert((who, run), facts.runs.len());
                    // A command goes on until its guard ends it.
                    let killed = facts.case.killed(who).filter(|_| !facts.case.is_program(who));
                    let over = killed.unwrap_or(u64::MAX);
                    facts.runs.push(Ran { run, who, begun: at, over, how: None });
                }
                Said::Ended(run, how) => {
                    let ran = &mut facts.runs[live[&(who, run)]];
                    (ran.over, ran.how) = (at, Some(how));
                }
                Said::Dropped(run) => facts.runs[live[&(who, run)]].over = at,
                Said::Lost(run) => drop(facts.lost.insert((who, run))),
                Said::Adding(batch) => facts.made.extend(batch.into_iter().map(|made| (made.id, made))),
                Said::Added(ids, _) => facts.acknowledged.extend(ids.into_iter().map(|id| (id, at))),
                Said::Cancelling(id) => drop(facts.cancelled.insert(id)),
                _ => {}
            }
        }
        facts
    }

    /// All that does not hold.
    pub(crate) fn broken(&self, scene: &Scene) -> Vec<String> {
        let mut broken = Vec::new();
        broken.extend(self.not_kept());
        broken.extend(self.twice());
        broken.extend(self.beside(scene, |ran| Some(ran.run.0.to_string())));
        broken.extend(self.beside(scene, |ran| self.made.get(&ran.run.0)?.key.clone()));
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
    fn beside(&self, scene: &Scene, common: impl Fn(&Ran) -> Option<String>) -> Vec<String> {
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
                || before.over != u64::MAX
                    && before.over - ran.begun <= scene.log.explained(before.begun, before.over);
            if !is_excused {
                broken.push(format!("T2, T6: of {common} two at a time: {before:?} and {ran:?}"));
            }
            if ran.over > before.over || self.was_forgotten(before, ran) {
                last.insert(common, ran);
            }
        }
        broken
    }

    /// Whether the store that leased the one had forgotten the other.
    fn was_forgotten(&self, before: &Ran, ran: &Ran) -> bool {
        before.run.1.incarnation != ran.run.1.incarnation
            && self.case.losses.iter().any(|(begun, _)| *begun < ran.begun)
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
            || self.may_have_forgotten(ran.over) && !self.was_live_at_a_loss(ran);
        let is_told = self.lost.contains(&(ran.who, ran.run));
        (!is_out && !is_told)
            .then(|| format!("T2: the end of a run was refused, and nobody was told: {ran:?}"))
    }

    fn was_live_at_a_loss(&self, ran: &Ran) -> bool {
        self.case.losses.iter().any(|(begun, over)| ran.begun < *begun && ran.over > *over)
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
