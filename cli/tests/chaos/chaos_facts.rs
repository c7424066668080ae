//! What is known of a scene: what was done to it, what its processes logged, and what is stored in the end.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use interval_queue_tasks::{Stored, TaskId};

use crate::{
    harm::{Injection, Part},
    log::{Line, Made, Run, Said},
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

    pub(crate) fn was_frozen(&self, who: usize, from: u64, to: u64) -> bool {
        let thawed = self.when(who, What::Thawed).chain([u64::MAX]);
        self.when(who, What::Frozen).zip(thawed).any(|(frozen, thawed)| frozen <= to && from <= thawed)
    }

    pub(crate) fn is_program(&self, who: usize) -> bool {
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
    /// What was acknowledged, and when it was sent.
    pub(crate) acknowledged: BTreeMap<TaskId, u64>,
    pub(crate) cancelled: BTreeSet<TaskId>,
    pub(crate) lost: HashSet<(usize, Run)>,
    pub(crate) refused: HashSet<(usize, TaskId)>,
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
            refused: HashSet::new(),
            stored,
        };
        let mut sent: HashMap<TaskId, u64> = HashMap::new();
        let mut live: HashMap<(usize, Run), usize> = HashMap::new();
        for Line { at, who, said } in lines {
            match said {
                Said::Begun(run) => {
                    live.insert((who, run), facts.runs.len());
                    let over = if facts.case.is_program(who) {
                        // A command goes on until its guard ends it: as long as it logs that it lives.
                        at
                    } else {
                        facts.case.killed(who).unwrap_or(u64::MAX)
                    };
                    facts.runs.push(Ran { run, who, begun: at, over, how: None });
                }
                Said::Ended(run, how) => {
                    let ran = &mut facts.runs[live[&(who, run)]];
                    (ran.over, ran.how) = (at, Some(how));
                }
                Said::Lives(run) | Said::Dropped(run) => facts.runs[live[&(who, run)]].over = at,
                Said::Lost(run) => drop(facts.lost.insert((who, run))),
                Said::Refused(id) => drop(facts.refused.insert((who, id))),
                Said::Adding(batch) => {
                    sent.extend(batch.iter().map(|made| (made.id, at)));
                    facts.made.extend(batch.into_iter().map(|made| (made.id, made)));
                }
                Said::Added(ids, _) => facts.acknowledged.extend(ids.iter().map(|id| (*id, sent[id]))),
                Said::Cancelling(id) => drop(facts.cancelled.insert(id)),
                _ => {}
            }
        }
        facts
    }
}
