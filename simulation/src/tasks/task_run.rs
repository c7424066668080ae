//! Runs a plan of stored tasks, and finds a short one that breaks the same promise.

use std::time::Duration;

use super::{
    task_execution::Execution,
    task_plan::{Event, Plan},
    task_store::Rules,
};
use crate::{Entry, Promise, Settings, Violation, plan::Event as Trouble, shrink::shortest, simulate};

/// What came of a plan.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// The first promise that was broken.
    pub violation: Option<Violation>,
    /// How many tasks were stored.
    pub tasks: u64,
    /// How many runs began.
    pub runs: u64,
    /// Each of them: when, and of which task of the plan.
    pub starts: Vec<(Duration, usize)>,
    /// How many slots were granted, if starts are paced.
    pub slots: u64,
    /// How often workers stepped.
    pub steps: u64,
    /// How much time passed in the simulation.
    pub time: Duration,
    /// What happened, if a journal was asked for.
    pub journal: Vec<Entry>,
}

/// Carries a plan out under these rules.
pub fn run(plan: &Plan, rules: Rules) -> Outcome {
    carry_out(plan, rules, false)
}

/// Carries a plan out on a store whose pace, too, has rules of its own.
pub fn run_on(plan: &Plan, pace: crate::Rules) -> Outcome {
    let task_rules = interval_queue_task_contract::rules::apply;
    simulate_plan(plan, Settings { rules: pace, task_rules, ..Settings::seeded(plan.seed) })
}

/// The same, with a journal of what happens, which takes longer.
pub fn replay(plan: &Plan, rules: Rules) -> Outcome {
    carry_out(plan, rules, true)
}

fn carry_out(plan: &Plan, task_rules: Rules, keeps_journal: bool) -> Outcome {
    simulate_plan(plan, Settings { task_rules, keeps_journal, ..Settings::seeded(plan.seed) })
}

fn simulate_plan(plan: &Plan, settings: Settings) -> Outcome {
    let rewinds =
        |event: &Event| matches!(event, Event::Trouble(Trouble::FailOver { .. } | Trouble::OldCopy { .. }));
    let keeps_versions = plan.events.iter().any(|timed| rewinds(&timed.event));
    simulate(Settings { keeps_versions, ..settings }, |world| async move {
        let execution = Execution::new(world.clone(), plan);
        tokio::select! {
            biased;
            () = world.violated() => {}
            () = execution.run() => {}
        }
        execution.outcome()
    })
}

/// The shortest plan it can find that breaks `promise` as `plan` does.
pub fn shrink(plan: &Plan, promise: Promise, rules: Rules) -> Plan {
    let of = |events: &[super::Timed]| Plan { events: events.to_vec(), ..plan.clone() };
    let breaks = |events: &[super::Timed]| {
        run(&of(events), rules).violation.is_some_and(|violation| violation.promise == promise)
    };
    of(&shortest(&plan.events, breaks))
}
