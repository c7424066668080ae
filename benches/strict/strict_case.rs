//! What is measured: which limit, who keeps it, and how much of it is asked for.

use std::{path::Path, time::Duration};

use crate::{assignment::Offer, contender::StateKind, nginx::Limit, report::Scenario, scenario::Plan};

/// How many processes share the pace.
pub(crate) const PROCESSES: u32 = 4;

/// What keeps the pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// This library, spaced by slots.
    Slots,
    /// This library, spaced by starts.
    Starts,
    /// Another library, by its name among the [peers](crate::peers).
    Peer(&'static str),
    /// `interval-queue run … -- curl …`, in a loop in each process.
    Curl,
}

/// One of them against one limit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    pub(crate) limit: Limit,
    /// How much of the limit is asked for, in percent.
    pub(crate) share: u32,
    pub(crate) who: Who,
    /// Of all processes together; a multiple of their number.
    pub(crate) jobs: u64,
}

/// Those that a user would pick instead.
const PEERS: [Who; 3] = [Who::Peer("Bottleneck"), Who::Peer("BullMQ"), Who::Peer("PyrateLimiter")];
const FAST: Limit = Limit { rate: 100, burst: 0 };
const FAST_BURST: Limit = Limit { rate: 100, burst: 1 };
const SLOW: Limit = Limit { rate: 10, burst: 0 };
const SLOW_BURST: Limit = Limit { rate: 10, burst: 1 };

impl Case {
    /// All of them, or with a tenth of the requests.
    pub(crate) fn all(quick: bool) -> Vec<Self> {
        let ours = [
            (FAST, 100, Who::Slots, 600),
            (FAST, 95, Who::Slots, 600),
            (FAST, 95, Who::Starts, 600),
            (FAST_BURST, 100, Who::Slots, 600),
            (SLOW, 95, Who::Slots, 200),
            (SLOW, 95, Who::Starts, 200),
            (SLOW, 95, Who::Curl, 100),
            (SLOW_BURST, 100, Who::Curl, 100),
        ];
        let theirs = [(FAST, 100), (FAST, 95), (FAST_BURST, 100)]
            .into_iter()
            .flat_map(|(limit, share)| PEERS.map(|who| (limit, share, who, 600)));
        let mut all: Vec<_> = ours
            .into_iter()
            .chain(theirs)
            .map(|(limit, share, who, jobs)| Self {
                limit,
                share,
                who,
                jobs: if quick { jobs / 10 } else { jobs },
            })
            .map(|case| Self { jobs: case.jobs.next_multiple_of(PROCESSES.into()), ..case })
            .collect();
        all.sort_by_key(|case| {
            (std::cmp::Reverse(case.limit.rate), case.limit.burst, std::cmp::Reverse(case.share))
        });
        all
    }

    /// The interval that is asked for. Others count whole milliseconds: theirs is the next longer one.
    pub(crate) fn interval(&self) -> Duration {
        let micros = (1_000_000 * 100_u64).div_ceil(u64::from(self.limit.rate * self.share));
        match self.who {
            Who::Peer(_) => Duration::from_millis(micros.div_ceil(1000)),
            Who::Slots | Who::Starts | Who::Curl => Duration::from_micros(micros),
        }
    }

    /// How long a run takes, about.
    pub(crate) fn takes(&self) -> Duration {
        self.interval() * u32::try_from(self.jobs).unwrap_or(u32::MAX) + Duration::from_millis(1_200)
    }

    /// The same for the workers.
    pub(crate) fn plan(&self, state: StateKind) -> Plan {
        Plan {
            scenario: Scenario::Saturated,
            state,
            interval: self.interval(),
            processes: PROCESSES,
            jobs: self.jobs,
            offer: Offer::Saturated,
            lease: None,
            kill_after: None,
            round_trip: Duration::ZERO,
        }
    }

    /// `100 r/s, burst 0`.
    pub(crate) fn limit(&self) -> String {
        format!("{} r/s, burst {}", self.limit.rate, self.limit.burst)
    }
}

impl Who {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Slots => "interval-queue",
            Self::Starts => "interval-queue by starts",
            Self::Peer(name) => name,
            Self::Curl => "interval-queue run -- curl",
        }
    }
}

/// The program of this repository as `cargo build --release` leaves it.
pub(crate) fn program() -> Option<std::path::PathBuf> {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("release").join("interval-queue");
    built.is_file().then_some(built)
}
