//! Which of the many results are shown beside each other.

use crate::report::{Pace, Report, Scenario};

/// The name under which this project is a contender.
pub(crate) const OURS: &str = "interval-queue";

/// The interval that the summary and the pictures show.
pub(crate) const INTERVAL: u64 = 10_000;

/// What the summary and the pictures compare: saturated or worse, by several processes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<'a> {
    report: &'a Report,
    /// The state on which we are compared with the others.
    state: Option<&'a str>,
}

impl<'a> Choice<'a> {
    pub(crate) fn of(report: &'a Report) -> Self {
        let mut ours = report.paces.iter().filter(|pace| is_ours(pace) && pace.processes > 1);
        let redis = ours.clone().find(|pace| pace.state == "redis");
        let state = redis.or_else(|| ours.next()).map(|pace| pace.state.as_str());
        Self { report, state }
    }

    /// We and each other contender once, in this scenario. Others have the state that we have where they can.
    pub(crate) fn contenders(&self, scenario: Scenario) -> Vec<&'a Pace> {
        let mut chosen: Vec<&Pace> = Vec::new();
        for pace in self.paces(scenario) {
            let is_better =
                |other: &Pace| Some(pace.state.as_str()) == self.state && other.state != pace.state;
            match chosen.iter_mut().find(|other| other.contender == pace.contender) {
                Some(other) if is_better(other) => *other = pace,
                Some(_) => {}
                None => chosen.push(pace),
            }
        }
        chosen
    }

    /// All results of this scenario: our own first, the one that is compared with the others before those on
    /// other states.
    pub(crate) fn paces(&self, scenario: Scenario) -> Vec<&'a Pace> {
        let is_one = |pace: &&Pace| {
            pace.scenario == scenario
                && pace.interval == INTERVAL
                && pace.processes > 1
                && !pace.runs.is_empty()
        };
        let mut paces: Vec<_> = self.report.paces.iter().filter(is_one).collect();
        paces.sort_by_key(|pace| (!is_ours(pace), is_ours(pace) && Some(pace.state.as_str()) != self.state));
        paces
    }
}

pub(crate) fn is_ours(pace: &Pace) -> bool {
    pace.contender == OURS
}
