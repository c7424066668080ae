//! What is run: the table of all plans.

use std::time::Duration;

use crate::{
    assignment::Offer,
    contender::StateKind,
    notes::Keep,
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
}

/// The lease of the killed: as short as can be told from the noise at 50 ms, long enough for twenty slots
/// there.
const LEASE: Duration = Duration::from_secs(1);
/// A round trip across an ocean.
const FAR: Duration = Duration::from_millis(40);

/// All there is. Numbers are such that most runs take about five seconds, ten where the most is asked of the
/// pace; `quick` ones about one.
pub(crate) fn table(quick: bool) -> Vec<Plan> {
    use StateKind::{Disk, Memory, Postgres, Redis, Sqlite, Tmpfs};
    let less = if quick { 10 } else { 1 };
    let mut plans = Vec::new();
    for (interval, most, jobs, sparse) in
        [(1, 5_000, 3_000, 500), (10, 1_000, 1_000, 200), (50, 200, 120, 60)]
    {
        for state in [Redis, Tmpfs, Disk, Memory, Sqlite, Postgres] {
            let jobs = if matches!(state, Redis | Sqlite | Postgres) { most } else { jobs };
            let saturated = Plan::new(Scenario::Saturated, state, ms(interval), jobs / less);
            let sparse = Plan::new(Scenario::Sparse, state, ms(interval), sparse / less.min(2));
            plans.extend([saturated, sparse]);
        }
    }
    // Some jobs have started when the process is killed, as many wait. The run goes on for two seconds after
    // the lease, also in haste.
    let (fast, slow) = if quick { ((600, 1_000), (120, 1_200)) } else { ((800, 1_600), (200, 2_000)) };
    for (interval, (jobs, after), states) in
        [(10, fast, &[Redis, Tmpfs, Disk, Sqlite, Postgres][..]), (50, slow, &[Redis][..])]
    {
        for state in states {
            let killed = Plan::new(Scenario::Killed, *state, ms(interval), jobs);
            plans.push(Plan { lease: Some(LEASE), kill_after: Some(ms(after)), ..killed });
        }
    }
    for state in [Redis, Postgres] {
        let far = Plan::new(Scenario::Far, state, ms(10), 1_000 / less.min(4));
        plans.push(Plan { round_trip: FAR, ..far });
    }
    plans.push(Plan::new(Scenario::Saturated, Redis, Duration::from_micros(20), 100_000));
    plans.push(Plan::new(Scenario::Ahead, Memory, Duration::from_micros(1), 1_000_000 / less.min(4)));
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
        Self { scenario, state, interval, processes, jobs, offer, round_trip, lease: None, kill_after: None }
    }

    /// How a user names it: `saturated redis 10ms`.
    pub(crate) fn name(&self) -> String {
        let scenario = format!("{:?}", self.scenario).to_lowercase();
        format!("{scenario} {} {}", self.state.name(), shown(self.interval))
    }

    /// What this library's workers write down only at the end.
    pub(crate) fn keep(&self) -> Keep {
        match self.scenario {
            Scenario::Killed => Keep::Nothing,
            _ if self.interval <= ms(1) => Keep::All,
            _ => Keep::Grants,
        }
    }

    /// How long a run takes at least.
    pub(crate) fn takes(&self) -> Duration {
        let jobs = u32::try_from(self.jobs).unwrap_or(u32::MAX);
        let paced = self.interval.saturating_mul(jobs);
        if self.offer == Offer::Sparse { paced * 2 } else { paced }
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
