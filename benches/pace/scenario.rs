//! What is run: the table of all plans.

use std::time::Duration;

use crate::{
    assignment::Offer,
    contender::StateKind,
    report::{Pace, Scenario},
};

/// One scenario on one state, with its numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) scenario: Scenario,
    pub(crate) state: StateKind,
    pub(crate) interval: Duration,
    pub(crate) processes: u32,
    /// Of all processes together; a multiple of their number.
    pub(crate) jobs: u64,
    pub(crate) offer: Offer,
    pub(crate) lease: Option<Duration>,
    /// When the first process is killed, after the beginning.
    pub(crate) kill_after: Option<Duration>,
    /// How long a round trip to the state takes longer than it would.
    pub(crate) round_trip: Duration,
    /// Whether this library's workers run on a multi-thread runtime whatever was asked for.
    pub(crate) multi_thread: bool,
}

/// The lease of the killed: as short as can be told from the noise at 50 ms, long enough for twenty slots there.
const LEASE: Duration = Duration::from_secs(1);
/// A round trip across an ocean.
const FAR: Duration = Duration::from_millis(40);

/// All there is. Numbers are such that each run takes about ten seconds, twenty where the most is asked of the
/// pace; `quick` ones about one.
pub(crate) fn table(quick: bool) -> Vec<Plan> {
    use StateKind::{Disk, Memory, Redis, Sqlite, Tmpfs};
    let less = if quick { 10 } else { 1 };
    let mut plans = Vec::new();
    for (interval, jobs) in [(1, 5_000), (10, 2_000), (50, 200)] {
        for state in [Redis, Tmpfs, Disk, Memory, Sqlite] {
            let saturated = Plan::new(Scenario::Saturated, state, ms(interval), jobs / less);
            let sparse = Plan::new(Scenario::Sparse, state, ms(interval), (jobs / less / 2).min(500));
            plans.extend([saturated, sparse]);
        }
    }
    // A third of the jobs has started when the process is killed, as many wait. The run goes on for two seconds after the
    // lease, also in haste.
    for (interval, jobs, after) in [(10, 1_200 / less.min(2), ms(2_000)), (50, 240 / less.min(2), ms(2_500))]
    {
        for state in [Redis, Tmpfs, Disk, Sqlite] {
            let killed = Plan::new(Scenario::Killed, state, ms(interval), jobs);
            let after = after / u32::try_from(less.min(2)).unwrap_or(1);
            plans.push(Plan { lease: Some(LEASE), kill_after: Some(after), ..killed });
        }
    }
    let far = Plan::new(Scenario::Far, Redis, ms(10), 1_000 / less.min(4));
    plans.push(Plan { round_trip: FAR, ..far });
    plans.push(Plan::new(Scenario::Saturated, Redis, Duration::from_micros(20), 100_000 / less));
    let ahead = Plan::new(Scenario::Ahead, Memory, Duration::from_micros(1), 1_000_000 / less);
    plans.push(Plan { multi_thread: true, ..ahead });
    plans
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Plan {
    fn new(scenario: Scenario, state: StateKind, interval: Duration, jobs: u64) -> Self {
        let offer = match scenario {
            Scenario::Saturated | Scenario::Killed | Scenario::Far => Offer::Saturated,
            Scenario::Sparse => Offer::Sparse,
            Scenario::Ahead => Offer::Ahead,
        };
        let processes = if state == StateKind::Memory { 1 } else { 4 };
        let jobs = jobs / u64::from(processes) * u64::from(processes);
        let round_trip = Duration::ZERO;
        Self {
            scenario,
            state,
            interval,
            processes,
            jobs,
            offer,
            round_trip,
            lease: None,
            kill_after: None,
            multi_thread: false,
        }
    }

    /// How a user names it: `saturated redis 10ms`.
    pub(crate) fn name(&self) -> String {
        let scenario = format!("{:?}", self.scenario).to_lowercase();
        format!("{scenario} {} {}", self.state.name(), shown(self.interval))
    }

    /// Whether workers write down what happened only when they are done: a line for each start costs too much of an interval
    /// this short.
    pub(crate) fn keeps_notes(&self) -> bool {
        self.interval <= ms(1) && self.kill_after.is_none()
    }

    /// An entry in the report, without runs.
    pub(crate) fn pace(&self, contender: &str) -> Pace {
        Pace {
            contender: contender.to_owned(),
            state: self.state.name().to_owned(),
            scenario: self.scenario,
            interval: self.interval_us(),
            processes: self.processes,
            jobs: self.jobs,
            runs: Vec::new(),
            sample: Vec::new(),
            failure: None,
        }
    }

    pub(crate) fn interval_us(&self) -> u64 {
        u64::try_from(self.interval.as_micros()).unwrap_or(u64::MAX)
    }
}

/// A duration as a user would write it.
pub(crate) fn shown(duration: Duration) -> String {
    match duration.as_micros() {
        micros if micros % 1000 == 0 => format!("{}ms", micros / 1000),
        micros => format!("{micros}us"),
    }
}
