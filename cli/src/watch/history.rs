//! The reads of a queue so far: its last record, and the starts derived from the records.

use std::{collections::VecDeque, time::Duration};

use indicatif::HumanCount;
use interval_queue::{Micros, Snapshot, Ticket};

use super::start::{Start, starts_between};

/// Starts are kept for this time, or for twelve intervals if that is longer.
const KEEP_TIME: Micros = Micros::from_millis(240_000);
/// Maximum starts that are kept.
const MAX_STARTS: usize = 20_000;
/// The rate is measured over this time in microseconds, or over ten intervals if that is longer.
const RATE_WINDOW_MICROS: u64 = 10_000_000;
/// If the store's clock goes back by more than this, it was stepped.
const MIN_CLOCK_STEP: Micros = Micros::from_millis(1000);

/// The history of a queue.
#[derive(Clone, Debug)]
pub(crate) struct History {
    snapshot: Snapshot,
    /// When the snapshot arrived, on the clock of the host.
    seen_at: Duration,
    /// Start of the observation, on the store's clock.
    since: Micros,
    starts: VecDeque<Start>,
    /// The next ticket, and since when it is the next.
    next: Option<(Ticket, Micros)>,
}

/// The rate of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    /// Starts in `over`.
    pub(crate) starts: u64,
    /// The measured time: a whole number of intervals, so that a queue without unused slots has
    /// exactly its rate.
    pub(crate) over: Micros,
    /// The time between two starts.
    pub(crate) interval: Micros,
}

impl Rate {
    /// The achieved rate as a fraction of the nominal one.
    pub(crate) fn share(&self) -> f64 {
        self.starts as f64 * self.interval.get() as f64 / self.over.get().max(1) as f64
    }
}

impl History {
    /// Begins with a first read, at `now` on the clock of the host.
    pub(crate) fn new(snapshot: Snapshot, now: Duration) -> Self {
        let since = snapshot.at;
        let mut history = Self { snapshot, seen_at: now, since, starts: VecDeque::new(), next: None };
        history.note_next();
        history
    }

    /// Adds a read.
    pub(crate) fn feed(&mut self, snapshot: Snapshot, now: Duration) {
        let before = &self.snapshot;
        if snapshot.at + MIN_CLOCK_STEP < before.at {
            let back = before.at - snapshot.at;
            self.since = self.since - back;
            self.next = None;
            self.starts.iter_mut().for_each(|start| start.slot = start.slot - back);
        } else if snapshot.at < before.at {
            // The replies arrived in another order than they were made.
            return;
        }
        self.starts.extend(starts_between(before, &snapshot));
        self.snapshot = snapshot;
        self.seen_at = now;
        self.note_next();
        let kept = KEEP_TIME.max(self.snapshot.record.interval() * 12);
        let oldest = self.snapshot.at - kept;
        while self.starts.len() > MAX_STARTS || self.starts.front().is_some_and(|start| start.slot < oldest) {
            if let Some(gone) = self.starts.pop_front() {
                self.since = self.since.max(gone.slot + Micros::new(1));
            }
        }
    }

    fn note_next(&mut self) {
        let next = self.snapshot.waiting().first().map(|(ticket, ..)| *ticket);
        match (next, self.next) {
            (Some(ticket), Some((known, _))) if ticket == known => {}
            (next, _) => self.next = next.map(|ticket| (ticket, self.snapshot.at)),
        }
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Time since the last read.
    pub(crate) fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.seen_at)
    }

    /// The time on the store's clock.
    pub(crate) fn state_now(&self, now: Duration) -> Micros {
        self.snapshot.at + Micros::from_duration(self.age(now))
    }

    /// Start of the observation, on the store's clock.
    pub(crate) fn since(&self) -> Micros {
        self.since
    }

    /// The observed starts, oldest first except for late ones.
    pub(crate) fn starts(&self) -> &VecDeque<Start> {
        &self.starts
    }

    /// The rate up to the last read. `None` before an interval has passed.
    pub(crate) fn rate(&self) -> Option<Rate> {
        let interval = self.snapshot.record.meters.longest();
        let end = self.snapshot.at;
        let seen = (end - self.since).get() / interval.get().max(1);
        let intervals = (RATE_WINDOW_MICROS / interval.get().max(1)).max(10).min(seen);
        if intervals == 0 {
            return None;
        }
        let over = interval * intervals;
        let begin = end - over;
        let within = self.starts.iter().filter(|start| begin < start.slot && start.slot <= end);
        Some(Rate { starts: within.map(|start| start.count).sum(), over, interval })
    }

    /// Time since the last observed start.
    pub(crate) fn last_start(&self, now: Duration) -> Option<Duration> {
        let last = self.starts.iter().rev().take(64).map(|start| start.slot).max()?;
        Some((self.state_now(now) - last).to_duration())
    }

    /// How long, at the last read, the next ticket could have started and nothing did. `None`:
    /// nothing could start.
    pub(crate) fn overdue(&self) -> Option<Duration> {
        let (_, next_since) = self.next?;
        let record = &self.snapshot.record;
        let last = self.starts.iter().rev().take(64).map(|start| start.slot).max().unwrap_or(Micros::ZERO);
        let due = record.next_slot(1).max(next_since).max(last);
        let overdue = self.snapshot.at - due;
        (overdue > Micros::ZERO).then(|| overdue.to_duration())
    }
}

/// The waiting tickets of a snapshot.
pub(crate) trait Waiting {
    /// The heads of the live shards, lowest first.
    fn waiting(&self) -> Vec<(Ticket, &interval_queue::ShardId, &interval_queue::Presence)>;
    /// Maximum number of outstanding tickets.
    fn outstanding(&self) -> u64;
    /// Formats the number: `4`, or `at most 4 tickets` if some may be unowned.
    fn tickets(&self) -> String;
}

impl Waiting for Snapshot {
    fn waiting(&self) -> Vec<(Ticket, &interval_queue::ShardId, &interval_queue::Presence)> {
        let alive = self.record.shards.iter().filter(|(_, presence)| presence.expires_at > self.at);
        let mut heads: Vec<_> =
            alive.filter_map(|(id, presence)| presence.head.map(|head| (head, id, presence))).collect();
        heads.sort_by_key(|(head, id, _)| (*head, *id));
        heads
    }

    fn outstanding(&self) -> u64 {
        let late = self.waiting().iter().filter(|(head, ..)| *head <= self.record.current).count();
        self.record.ticket.behind(self.record.current) + late as u64
    }

    fn tickets(&self) -> String {
        let outstanding = self.outstanding();
        let doubtful = self.record.gaps_until > self.record.current || self.waiting().is_empty();
        match outstanding {
            1 if doubtful => "at most 1 ticket".to_owned(),
            2.. if doubtful => format!("at most {} tickets", HumanCount(outstanding)),
            _ => HumanCount(outstanding).to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::scene::Scene;

    const NEVER: Duration = Duration::ZERO;

    /// A queue that is read five times a second and starts one job each 100 ms, from the first read
    /// on.
    fn steady(reads: u64) -> History {
        let snapshot_at = |n: u64| {
            let at = 100_000_000 + n * 200_000;
            Scene::new(100_000).at(at).ticket(2 * n).current(2 * n).free_at(at + 50_000).build()
        };
        let mut history = History::new(snapshot_at(0), NEVER);
        (1..=reads).for_each(|n| history.feed(snapshot_at(n), NEVER));
        history
    }

    #[test]
    fn a_queue_that_wastes_no_slot_has_exactly_its_rate() {
        for reads in [1, 2, 7, 50, 200] {
            let rate = steady(reads).rate().unwrap();
            assert_eq!(rate.share(), 1.0, "{reads}: {rate:?}");
        }
        assert_eq!(steady(0).rate(), None, "nothing has been seen yet");
    }

    #[test]
    fn a_queue_that_stops_loses_its_rate() {
        let mut history = steady(50);
        let record = history.snapshot().record.clone();
        let mut at = history.snapshot().at;
        for share in [0.9, 0.8] {
            at = at + Micros::from_millis(1000);
            history.feed(Snapshot { at, record: record.clone() }, NEVER);
            let found = history.rate().unwrap().share();
            assert!((found - share).abs() < 0.02, "{found}");
        }
    }

    #[test]
    fn the_history_is_bounded() {
        let mut history = steady(5_000);
        assert!(history.starts().len() <= 2_500, "{}", history.starts().len());
        let mut scene = Scene::new(1).at(0).ticket(0).current(0).free_at(0);
        history = History::new(scene.build(), NEVER);
        for n in 1..=1000_u64 {
            scene = scene.at(n * 200_000).ticket(n * 200_000).current(n * 200_000).free_at(n * 200_000);
            history.feed(scene.build(), NEVER);
        }
        assert!(history.starts().len() <= MAX_STARTS, "{}", history.starts().len());
        let share = history.rate().unwrap().share();
        assert!((share - 1.0).abs() < 0.01, "nothing is lost that counts: {share}");
    }

    #[test]
    fn a_clock_that_is_stepped_back_takes_the_past_along() {
        let mut history = steady(50);
        let (rate, count) = (history.rate().unwrap(), history.starts().len());
        let mut back = history.snapshot().clone();
        back.at = back.at - Micros::from_millis(5000);
        back.record.meters[0].tat = back.record.meters[0].tat - Micros::from_millis(5000);
        history.feed(back, NEVER);
        assert_eq!(history.starts().len(), count);
        assert_eq!(history.rate(), Some(rate));
    }
}
