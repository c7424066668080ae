//! What is simulated: jobs at a pace, or stored tasks.

use std::time::Duration;

use interval_queue_contract::rules;
use interval_queue_sim::{
    Entry, Fault, Plan, Promise, Rules, SABOTAGES, Shape, Violation, replay, run, shrink,
    tasks::{self, Plan as TaskPlan},
};

/// Plans of one shape, under rules that are right or wrong.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    Jobs(Shape, Rules),
    Tasks(tasks::Shape, tasks::Rules),
}

pub(crate) struct SimulationResult {
    pub(crate) violation: Option<Violation>,
    pub(crate) faults: Vec<(Fault, u64)>,
    pub(crate) time: Duration,
    pub(crate) counts: Vec<(&'static str, u64)>,
}

pub(crate) struct Transcript {
    pub(crate) plan: String,
    pub(crate) journal: Vec<Entry>,
    pub(crate) violation: Option<Violation>,
    pub(crate) result: String,
}

impl Subject {
    /// `sabotage`: with rules that are wrong in this way.
    pub(crate) fn jobs(shape: Shape, sabotage: Option<&str>) -> Result<Self, String> {
        let all = SABOTAGES.map(|sabotage| (sabotage.name, sabotage.rules));
        Ok(Self::Jobs(shape, named(&all, sabotage)?.unwrap_or(rules::apply)))
    }

    pub(crate) fn tasks(shape: tasks::Shape, sabotage: Option<&str>) -> Result<Self, String> {
        let all = tasks::SABOTAGES.map(|sabotage| (sabotage.name, sabotage.rules));
        let right = interval_queue_task_contract::rules::apply;
        Ok(Self::Tasks(shape, named(&all, sabotage)?.unwrap_or(right)))
    }

    pub(crate) fn simulate(&self, seed: u64) -> SimulationResult {
        match self {
            Self::Jobs(shape, rules) => {
                let plan = Plan::make(seed, shape);
                let outcome = run(&plan, *rules);
                SimulationResult {
                    violation: outcome.violation,
                    faults: plan.faults().collect(),
                    time: outcome.time,
                    counts: vec![
                        ("jobs", plan.jobs() as u64),
                        ("started", outcome.started),
                        ("slots", outcome.slots),
                        ("early", outcome.early),
                    ],
                }
            }
            Self::Tasks(shape, rules) => {
                let plan = TaskPlan::make(seed, shape);
                let outcome = tasks::run(&plan, *rules);
                SimulationResult {
                    violation: outcome.violation,
                    faults: plan.faults().collect(),
                    time: outcome.time,
                    counts: vec![("tasks", outcome.tasks), ("runs", outcome.runs), ("steps", outcome.steps)],
                }
            }
        }
    }

    pub(crate) fn replay(&self, seed: u64) -> Transcript {
        match self {
            Self::Jobs(shape, rules) => transcribe_jobs(&Plan::make(seed, shape), *rules),
            Self::Tasks(shape, rules) => transcribe_tasks(&TaskPlan::make(seed, shape), *rules),
        }
    }

    /// The shortest plan found that breaks the promise as that of the seed does.
    pub(crate) fn shortest(&self, seed: u64, promise: Promise) -> Transcript {
        match self {
            Self::Jobs(shape, rules) => {
                transcribe_jobs(&shrink(&Plan::make(seed, shape), promise, *rules), *rules)
            }
            Self::Tasks(shape, rules) => {
                transcribe_tasks(&tasks::shrink(&TaskPlan::make(seed, shape), promise, *rules), *rules)
            }
        }
    }
}

fn transcribe_jobs(plan: &Plan, rules: Rules) -> Transcript {
    let outcome = replay(plan, rules);
    let result = format!("{} of the jobs started in {:?}", outcome.started, outcome.busy);
    Transcript { plan: plan.to_string(), journal: outcome.journal, violation: outcome.violation, result }
}

fn transcribe_tasks(plan: &TaskPlan, rules: tasks::Rules) -> Transcript {
    let outcome = tasks::replay(plan, rules);
    let result = format!("{} runs of {} tasks in {:?}", outcome.runs, outcome.tasks, outcome.time);
    Transcript { plan: plan.to_string(), journal: outcome.journal, violation: outcome.violation, result }
}

fn named<R: Copy>(all: &[(&str, R)], name: Option<&str>) -> Result<Option<R>, String> {
    let Some(name) = name else { return Ok(None) };
    let found = all.iter().find(|(known, _)| *known == name);
    let names = || all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    found
        .map(|(_, rules)| Some(*rules))
        .ok_or_else(|| format!("there is no rule {name:?} to break: use one of {}", names()))
}
