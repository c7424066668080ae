//! The rule of a schedule, and its instants.

use std::collections::VecDeque;

use interval_queue::{InvalidInput, Micros};
use interval_queue_task_contract::MAX_DELAY;
use serde::{Deserialize, Serialize};

use super::cron::Cron;

pub(super) const MIN_INTERVAL: Micros = Micros::from_millis(1_000);
const HOUR: Micros = Micros::from_millis(3_600_000);

/// When a [schedule](crate::Schedule) adds tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Rule {
    /// Whole intervals after 1970-01-01 00:00 UTC plus the offset.
    Every {
        /// The interval.
        every_us: Micros,
        /// The offset, less than the interval.
        offset_us: Micros,
    },
    /// The times of a cron line.
    Cron {
        /// The line: minute, hour, day of the month, month, day of the week.
        line: String,
        /// The IANA name of the time zone.
        zone: String,
    },
    /// A time after the previous task has ended.
    AfterEnd {
        /// The time after the end.
        after_us: Micros,
    },
}

impl Rule {
    pub(super) fn instants(&self) -> Result<Instants, InvalidInput> {
        match self {
            Self::Every { every_us, offset_us } => {
                check_length("interval", *every_us)?;
                Ok(Instants::Every(every_us.get(), offset_us.get() % every_us.get()))
            }
            Self::Cron { line, zone } => Cron::new(line, zone).map(Instants::Cron),
            Self::AfterEnd { after_us } => {
                check_length("time after the end", *after_us)?;
                Ok(Instants::AfterEnd(*after_us))
            }
        }
    }
}

fn check_length(what: &str, length: Micros) -> Result<(), InvalidInput> {
    match (MIN_INTERVAL..=MAX_DELAY).contains(&length) {
        true => Ok(()),
        false => Err(InvalidInput::new(format!("{what} {:?}: give 1 s to ten years", length.to_duration()))),
    }
}

#[derive(Debug)]
pub(super) enum Instants {
    Every(u64, u64),
    Cron(Cron),
    AfterEnd(Micros),
}

impl Instants {
    /// `None`: unknown, or none within four years.
    pub(super) fn next(&self, after: Micros) -> Option<Micros> {
        match self {
            Self::Every(every, offset) => {
                let before = after.get().checked_sub(*offset).map(|passed| passed - passed % every);
                let next =
                    before.map_or(*offset, |before| before.saturating_add(*every).saturating_add(*offset));
                Some(Micros::new(next))
            }
            Self::Cron(cron) => cron.next(after),
            Self::AfterEnd(_) => None,
        }
    }

    /// At most `most`. `from` counts as an instant.
    pub(super) fn last(&self, from: Micros, until: Micros, most: usize) -> Vec<Micros> {
        let mut span = HOUR;
        loop {
            let begin = from.max(until - span);
            let first = if begin == from { Some(from) } else { self.next(begin - Micros::new(1)) };
            let all = std::iter::successors(first, |at| self.next(*at));
            let mut last = VecDeque::new();
            for at in all.take_while(|at| *at <= until) {
                last.push_back(at);
                if last.len() > most {
                    last.pop_front();
                }
            }
            if begin == from || last.len() == most {
                return last.into();
            }
            span = span + span;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(all: impl IntoIterator<Item = u64>) -> Vec<Micros> {
        all.into_iter().map(|seconds| Micros::from_millis(seconds * 1_000)).collect()
    }

    fn every(every: u64, offset: u64) -> Instants {
        let [every_us, offset_us] = [every, offset].map(|seconds| Micros::from_millis(seconds * 1_000));
        Rule::Every { every_us, offset_us }.instants().unwrap()
    }

    #[test]
    fn whole_intervals_follow_each_other() {
        let next = |instants: &Instants, after: u64| instants.next(Micros::new(after)).unwrap().get();
        let plain = every(10, 0);
        assert_eq!(
            [0, 9_999_999, 10_000_000].map(|after| next(&plain, after)),
            [10_000_000, 10_000_000, 20_000_000]
        );
        let later = every(10, 3);
        assert_eq!(
            [0, 3_000_000, 12_999_999].map(|after| next(&later, after)),
            [3_000_000, 13_000_000, 13_000_000]
        );
    }

    #[test]
    fn the_last_instants_are_found_however_long_ago_the_first_is() {
        let [from, until] = [100, 1_000_000_004].map(|seconds| Micros::from_millis(seconds * 1_000));
        assert_eq!(every(10, 0).last(from, until, 2), seconds([999_999_990, 1_000_000_000]));
        // An interval longer than the first search span.
        assert_eq!(every(100_000_000, 0).last(from, until, 2), seconds([900_000_000, 1_000_000_000]));
        // `from` counts even if the rule has changed since.
        let until = Micros::from_millis(111_000);
        assert_eq!(every(10, 0).last(Micros::from_millis(97_000), until, 9), seconds([97, 100, 110]));
        assert_eq!(every(1_000, 0).last(Micros::from_millis(97_000), until, 9), seconds([97]));
    }

    #[test]
    fn lengths_have_bounds() {
        for (rule, says) in [
            (
                Rule::Every { every_us: Micros::ZERO, offset_us: Micros::ZERO },
                "interval 0ns: give 1 s to ten years",
            ),
            (Rule::AfterEnd { after_us: Micros::new(999_999) }, "time after the end 999.999ms: give 1 s"),
            (Rule::AfterEnd { after_us: MAX_DELAY + Micros::new(1) }, "to ten years"),
        ] {
            let error = rule.instants().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
