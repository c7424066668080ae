//! Earlier reads of the chosen queue: starts over time, and the rate of ended tasks.

use std::collections::VecDeque;

use interval_queue::{Micros, Snapshot};
use interval_queue_documents::Counts;

use crate::tasks::Summary;

const MAX_COLUMNS: u64 = 120;
/// Or the interval of the slowest rate, if that is longer.
const MIN_COLUMN: Micros = Micros::from_millis(1_000);
/// Columns over which the achieved rate is measured.
const RATE_COLUMNS: u64 = 10;
/// Approximate, for the rate of ended tasks.
const TASKS_WINDOW: Micros = Micros::from_millis(10_000);
const MAX_TASK_READS: usize = 128;

#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The last read of the rate limit.
    last: Option<Snapshot>,
    /// Starts since the first read, up to instants of the store's clock.
    starts: VecDeque<(Micros, f64)>,
    /// Counts of tasks at instants of the store's clock.
    counts: VecDeque<(Micros, Counts)>,
}

/// Starts per column, and the achieved rate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Starts {
    pub(crate) column: Micros,
    pub(crate) columns: Vec<u64>,
    /// Starts of a column without unused slots.
    pub(crate) nominal: u64,
    /// Fraction of the rate limit. `None`: not known yet.
    pub(crate) share: Option<f64>,
}

impl History {
    /// Starts are tickets that `current` has passed. Tickets without an owner are passed in one
    /// step, so the starts between two reads are limited to the slots between them.
    pub(crate) fn add_rate(&mut self, rate: &Snapshot) {
        let interval = rate.record.interval();
        // Slots up to the last one are taken. Slots a whole interval ago, and not taken, are unused.
        let until = rate.record.last_slot.max(rate.at - interval);
        let before = self.last.replace(rate.clone());
        let (Some(before), Some(&(last, total))) = (before, self.starts.back()) else {
            self.starts.push_back((until, 0.0));
            return;
        };
        if rate.at < before.at || rate.record.current < before.record.current {
            // The clock was stepped back or the record was lost: older starts have no place.
            self.starts.clear();
            self.starts.push_back((until, 0.0));
            return;
        }
        let passed = rate.record.current.behind(before.record.current);
        let burst = u64::from(rate.record.meters.first().burst);
        let slots = (rate.at - before.at).get() / interval.get().max(1) + burst + 1;
        let column = column(rate);
        let step = Micros::new(column.get() / 10);
        if self.starts.iter().nth_back(1).is_some_and(|(earlier, _)| until - *earlier < step) {
            self.starts.pop_back();
        }
        self.starts.push_back((until.max(last), total + passed.min(slots) as f64));
        let oldest = until - column * (MAX_COLUMNS + 1);
        while self.starts.get(1).is_some_and(|(at, _)| *at <= oldest) {
            self.starts.pop_front();
        }
    }

    pub(crate) fn add_tasks(&mut self, tasks: &Summary) {
        if self.counts.back().is_some_and(|(last, _)| tasks.at < *last) {
            // The clock was stepped back.
            self.counts.clear();
        }
        self.counts.push_back((tasks.at, tasks.counts.clone()));
        let oldest = tasks.at - TASKS_WINDOW;
        let is_old = |counts: &VecDeque<(Micros, Counts)>| counts.get(1).is_some_and(|(at, _)| *at <= oldest);
        while self.counts.len() > MAX_TASK_READS || is_old(&self.counts) {
            self.counts.pop_front();
        }
    }

    /// Per second, in words. `None`: not known yet.
    pub(crate) fn ended(&self, tasks: &Summary) -> Option<String> {
        let (at, counts) = self.counts.front()?;
        tasks.pace_since((*at, counts))
    }

    /// `None`: the queue has no rate limit.
    pub(crate) fn starts(&self) -> Option<Starts> {
        let (rate, (first, _), (last, _)) = (self.last.as_ref()?, self.starts.front()?, self.starts.back()?);
        let column = column(rate);
        let seen = ((*last - *first).get() / column.get()).min(MAX_COLUMNS);
        let started =
            |newer: u64, older: u64| self.up_to(*last - column * newer) - self.up_to(*last - column * older);
        let measured = seen.min(RATE_COLUMNS);
        let nominal = column.get() as f64 / rate.record.meters.longest().get().max(1) as f64;
        Some(Starts {
            column,
            columns: (0..seen).map(|n| started(n, n + 1).round() as u64).collect(),
            nominal: nominal.round() as u64,
            share: (measured > 0).then(|| started(0, measured) / (nominal * measured as f64)),
        })
    }

    /// Starts from the first read up to an instant, evenly spread between two reads.
    fn up_to(&self, time: Micros) -> f64 {
        let after = self.starts.partition_point(|(at, _)| *at < time);
        let before = after.checked_sub(1).and_then(|before| self.starts.get(before));
        match (before, self.starts.get(after)) {
            (Some((from, total)), Some((until, more))) => {
                let part = (time - *from).get() as f64 / (*until - *from).get().max(1) as f64;
                total + (more - total) * part
            }
            (Some((_, total)), None) | (None, Some((_, total))) => *total,
            (None, None) => 0.0,
        }
    }
}

fn column(rate: &Snapshot) -> Micros {
    rate.record.meters.longest().max(MIN_COLUMN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::tests::{Scene, tasks};
    use interval_queue::task_contract::Counted;

    /// A queue that starts a job each 100 ms, read every 200 ms.
    fn steady(reads: u64) -> History {
        let mut history = History::default();
        for n in 0..=reads {
            let at = 100_000_000 + n * 200_000;
            let scene = Scene::new(100_000).at(at).ticket(2 * n).current(2 * n).free_at(at + 50_000);
            history.add_rate(&scene.build());
        }
        history
    }

    #[test]
    fn a_queue_without_unused_slots_has_its_rate() {
        assert_eq!(steady(0).starts().unwrap().share, None);
        for reads in [5, 12, 50, 2000] {
            let starts = steady(reads).starts().unwrap();
            assert!((starts.share.unwrap() - 1.0).abs() < 0.001, "{reads}: {starts:?}");
            assert!(starts.columns.iter().all(|count| *count == 10), "{starts:?}");
            assert!(starts.columns.len() <= MAX_COLUMNS as usize, "{}", starts.columns.len());
        }
        assert!(steady(2000).starts.len() < 2000);
    }

    #[test]
    fn an_idle_queue_loses_its_rate() {
        let mut history = steady(60);
        let mut rate = history.last.clone().unwrap();
        rate.at = rate.at + Micros::from_millis(5_000);
        history.add_rate(&rate);
        let starts = history.starts().unwrap();
        assert!((0.45..0.65).contains(&starts.share.unwrap()), "{starts:?}");
        assert_eq!(starts.columns[0], 0);
    }

    #[test]
    fn tickets_without_owner_are_limited_to_the_slots() {
        let mut history = History::default();
        history.add_rate(&Scene::new(100_000).at(1_000_000).ticket(2).current(2).build());
        history.add_rate(&Scene::new(100_000).at(3_000_000).ticket(5_000).current(5_000).build());
        assert_eq!(history.starts.back().unwrap().1, 22.0);
        // A record that was lost begins anew.
        history.add_rate(&Scene::new(100_000).at(4_000_000).ticket(1).current(1).build());
        assert_eq!(history.starts().unwrap().columns, [0_u64; 0]);
    }

    #[test]
    fn ended_tasks_are_counted_over_ten_seconds() {
        let read = |second: u64| Summary {
            at: Micros::from_millis(second * 1_000),
            ..tasks(&[(Counted::EverDone, second * second), (Counted::EverAdded, 9_000)])
        };
        let mut history = History::default();
        history.add_tasks(&read(100));
        assert_eq!(history.ended(&read(100)), None);
        (101..=400).for_each(|second| history.add_tasks(&read(second)));
        // 400² - 390² in ten seconds.
        assert_eq!(history.ended(&read(400)).unwrap(), "790 ended per second, in the last 10s");
        assert!(history.counts.len() <= 12, "{}", history.counts.len());
        history.add_tasks(&read(50));
        assert_eq!(history.ended(&read(50)), None, "the clock was stepped back");
    }
}
