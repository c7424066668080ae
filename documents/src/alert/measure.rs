//! The numbers of a status that alerts compare.

use std::time::Duration;

use interval_queue_tasks::State;

use crate::{Queue, duration, words};

/// A number of the status: a count, or whole microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    Tasks(State),
    Left,
    Lost,
    Unserved,
    Workers,
    Oldest,
}

impl Measure {
    /// All but the states.
    const OTHERS: [Self; 5] = [Self::Left, Self::Lost, Self::Unserved, Self::Workers, Self::Oldest];

    fn all() -> impl Iterator<Item = Self> {
        State::ALL.into_iter().map(Self::Tasks).chain(Self::OTHERS)
    }

    pub(super) fn parse(name: &str) -> Result<Self, String> {
        Self::all().find(|measure| measure.as_str() == name).ok_or_else(|| {
            let names: Vec<_> = Self::all().map(Self::as_str).collect();
            format!("{name:?} is no condition: give {}, paused or unreachable", names.join(", "))
        })
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Tasks(state) => state.as_str(),
            Self::Left => "left",
            Self::Lost => "lost",
            Self::Unserved => "unserved",
            Self::Workers => "workers",
            Self::Oldest => "oldest",
        }
    }

    pub(super) fn parse_limit(self, text: &str) -> Result<u64, String> {
        let name = self.as_str();
        if self == Self::Oldest {
            let limit = duration::parse(text).map_err(|error| format!("{name}: {error}"))?;
            return Ok(u64::try_from(limit.as_micros()).unwrap_or(u64::MAX));
        }
        text.parse().map_err(|_| format!("{text:?} is no whole number: compare {name} with 10, for example"))
    }

    pub(super) fn of(self, status: &Queue) -> u64 {
        match self {
            Self::Tasks(state) => status.counts.get(state.as_str()).copied().unwrap_or(0),
            Self::Left => status.left,
            Self::Lost => status.lost,
            Self::Unserved => status.unserved.len() as u64,
            Self::Workers => {
                status.workers.iter().filter(|worker| worker.lease_left_us.is_some()).count() as u64
            }
            Self::Oldest => status.oldest_ready_us.unwrap_or(0),
        }
    }

    /// A given number, as it can be parsed again.
    pub(super) fn show_limit(self, limit: u64) -> String {
        match self {
            Self::Oldest => words::show(Duration::from_micros(limit)),
            _ => limit.to_string(),
        }
    }

    /// A number that was found.
    pub(super) fn show(self, value: u64) -> String {
        match self {
            Self::Oldest => words::about(Duration::from_micros(value)),
            _ => value.to_string(),
        }
    }
}
