//! Runs a plan.

use std::time::Duration;

use crate::{
    check::Violation,
    execution::Execution,
    journal::Entry,
    plan::{Event, Plan},
    simulate::simulate,
    store::Rules,
    world::Settings,
};

/// What came of a plan.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// The first promise that was broken.
    pub violation: Option<Violation>,
    /// How many slots were granted.
    pub slots: u64,
    /// How many jobs started.
    pub started: u64,
    /// Slots that came early after a loss, within what is promised.
    pub early: u64,
    /// How often a job started after one with a higher ticket.
    pub inversions: u64,
    /// How much time passed in the simulation.
    pub time: Duration,
    /// Between the first and the last start.
    pub busy: Duration,
    /// What happened, if a journal was asked for.
    pub journal: Vec<Entry>,
}

/// Carries a plan out under these rules.
pub fn run(plan: &Plan, rules: Rules) -> Outcome {
    carry_out(plan, rules, false)
}

/// The same, with a journal of what happens, which takes longer.
pub fn replay(plan: &Plan, rules: Rules) -> Outcome {
    carry_out(plan, rules, true)
}

fn carry_out(plan: &Plan, rules: Rules, keeps_journal: bool) -> Outcome {
    let keeps_versions =
        plan.events.iter().any(|timed| matches!(timed.event, Event::FailOver { .. } | Event::OldCopy { .. }));
    let settings = Settings { rules, keeps_versions, keeps_journal, ..Settings::seeded(plan.seed) };
    simulate(settings, |world| async move {
        let execution = Execution::new(world.clone(), plan);
        tokio::select! {
            biased;
            () = world.violated() => {}
            () = execution.run() => {}
        }
        execution.outcome()
    })
}
