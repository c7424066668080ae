//! Counts of the tasks of a queue, for people and programs, and their rate of change.

use std::{collections::BTreeMap, time::Duration};

use indicatif::{HumanCount, HumanFloatCount};
use interval_queue::{
    Micros,
    task_contract::{Counted, Overview, State},
};
use serde_json::{Map, Value, json};

use crate::duration::about;

/// Counts of one kind or of all kinds.
pub(crate) type Counts = BTreeMap<Counted, u64>;

pub(super) fn total(overview: &Overview) -> Counts {
    let mut counts = Counts::new();
    for (_, counted, count) in &overview.counts {
        *counts.entry(*counted).or_default() += count;
    }
    counts
}

pub(super) fn in_state(counts: &Counts, state: State) -> u64 {
    counts.get(&Counted::Now(state)).copied().unwrap_or(0)
}

pub(super) fn ever(counts: &Counts, counted: Counted) -> u64 {
    counts.get(&counted).copied().unwrap_or(0)
}

/// Number of tasks that have not ended.
pub(super) fn left(counts: &Counts) -> u64 {
    State::ALL.into_iter().filter(|state| !state.is_ended()).map(|state| in_state(counts, state)).sum()
}

/// Formats the states that have tasks.
pub(super) fn states(counts: &Counts) -> String {
    let some =
        State::ALL.into_iter().map(|state| (state, in_state(counts, state))).filter(|(_, count)| *count > 0);
    let some: Vec<_> = some.map(|(state, count)| format!("{} {state}", HumanCount(count))).collect();
    if some.is_empty() { "none".into() } else { some.join(", ") }
}

/// The rate between two reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate {
    /// Time between the reads, by the store's clock.
    pub(super) over: Duration,
    /// Tasks that ended, and tasks that were added, in that time.
    pub(super) ended: u64,
    pub(super) added: u64,
}

impl Rate {
    pub(super) fn between((first, a): (Micros, &Counts), (second, b): (Micros, &Counts)) -> Option<Self> {
        let over = (second - first).to_duration();
        let since = |counted| ever(b, counted).saturating_sub(ever(a, counted));
        let ended = since(Counted::EverDone) + since(Counted::EverFailed) + since(Counted::EverCancelled);
        (!over.is_zero()).then_some(Self { over, ended, added: since(Counted::EverAdded) })
    }

    fn per_second(self) -> f64 {
        self.ended as f64 / self.over.as_secs_f64()
    }

    /// Estimated time until all tasks have ended, if no more are added.
    fn to_end(self, left: u64) -> Option<Duration> {
        let seconds = left as f64 / self.per_second();
        Duration::try_from_secs_f64(seconds.round()).ok().filter(|_| self.ended > 0 && left > 0)
    }
}

pub(super) fn share(counts: &Counts) -> Option<String> {
    let added = ever(counts, Counted::EverAdded);
    let ended = added.saturating_sub(left(counts));
    let share = (ended as f64 / added as f64 * 100.0).floor();
    (added > 0).then(|| format!("{share}% of the {} that were ever added", HumanCount(added)))
}

pub(super) fn rate_in_words(rate: Rate, left: u64) -> String {
    let over = about(Duration::from_millis(u64::try_from(rate.over.as_millis()).unwrap_or(u64::MAX)));
    if rate.ended == 0 {
        return format!("none ended in the last {over}");
    }
    let per_second = HumanFloatCount((rate.per_second() * 100.0).round() / 100.0);
    let mut text = format!("{per_second} ended per second, in the last {over}");
    if rate.added > 0 {
        text += &format!(", while {} were added", HumanCount(rate.added));
    } else if let Some(to_end) = rate.to_end(left) {
        text += &format!("; at this rate all have ended in {}, if nothing more is added", about(to_end));
    }
    text
}

pub(super) fn counts_json(counts: &Counts) -> Value {
    let by_name: Map<_, _> = Counted::all()
        .map(|counted| (counted.as_str().to_owned(), json!(counts.get(&counted).copied().unwrap_or(0))))
        .collect();
    Value::Object(by_name)
}

#[cfg(test)]
mod tests {
    use interval_queue::task_contract::{Kind, Settings};

    use super::*;

    fn overview(at: u64, counts: &[(Counted, u64)]) -> Overview {
        let counts = counts.iter().map(|(counted, count)| (Kind::default(), *counted, *count)).collect();
        Overview {
            at: Micros::new(at),
            settings: Settings::default(),
            paused: false,
            paused_at: None,
            paused_keys: Vec::new(),
            counts,
            workers: 0,
            lost: 0,
            kinds: Vec::new(),
            unserved: Vec::new(),
            oldest: None,
            miscounted: false,
            next: None,
        }
    }

    #[test]
    fn the_rate_is_what_was_seen_and_no_more() {
        let first = overview(1_000_000, &[(Counted::EverDone, 10), (Counted::EverAdded, 100)]);
        let counts = [(Counted::EverDone, 25), (Counted::EverFailed, 5), (Counted::EverAdded, 100)];
        let second = overview(3_000_000, &counts);
        let between = |first: &Overview, second: &Overview| {
            Rate::between((first.at, &total(first)), (second.at, &total(second)))
        };
        let rate = between(&first, &second).unwrap();
        assert_eq!(rate, Rate { over: Duration::from_secs(2), ended: 20, added: 0 });
        let words = rate_in_words(rate, 70);
        assert_eq!(
            words,
            "10 ended per second, in the last 2s; at this rate all have ended in 7s, if nothing more is added"
        );
        let more = Rate { added: 3, ..rate };
        assert_eq!(rate_in_words(more, 70), "10 ended per second, in the last 2s, while 3 were added");
        let none = Rate { ended: 0, ..rate };
        assert_eq!(rate_in_words(none, 70), "none ended in the last 2s");
        assert_eq!(none.to_end(70), None);
        assert_eq!(between(&first, &first), None, "no time has passed");
    }
}
