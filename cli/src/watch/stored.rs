//! The history of the stored tasks of the shown queue.

use std::{collections::VecDeque, time::Duration};

use interval_queue::{Micros, QueueName};

use interval_queue_documents::Counts;

use crate::tasks::Summary;

/// The rate is measured over about this time.
const RATE_WINDOW: Micros = Micros::from_millis(10_000);
/// Maximum reads that are kept.
const MAX_READS: usize = 128;

/// The history of the stored tasks of a queue.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) queue: QueueName,
    /// The last read, and when it arrived, on the clock of the host.
    pub(crate) last: Summary,
    seen_at: Duration,
    /// The counts of earlier reads.
    before: VecDeque<(Micros, Counts)>,
}

impl Stored {
    /// Begins with a first read, at `now` on the clock of the host.
    pub(crate) fn new(queue: QueueName, read: Summary, now: Duration) -> Self {
        Self { queue, last: read, seen_at: now, before: VecDeque::new() }
    }

    /// Adds a read.
    pub(crate) fn feed(&mut self, read: Summary, now: Duration) {
        if read.at < self.last.at {
            // The clock of the store was stepped back, or replies arrived in another order than
            // they were made.
            self.before.clear();
        } else {
            self.before.push_back((self.last.at, self.last.counts.clone()));
        }
        let oldest = read.at - RATE_WINDOW;
        while self.before.len() > MAX_READS || self.before.get(1).is_some_and(|(at, _)| *at <= oldest) {
            self.before.pop_front();
        }
        (self.last, self.seen_at) = (read, now);
    }

    /// The time on the store's clock.
    pub(crate) fn state_now(&self, now: Duration) -> Micros {
        self.last.at + Micros::from_duration(now.saturating_sub(self.seen_at))
    }

    /// The rate of ended tasks. `None`: not known yet.
    pub(crate) fn rate(&self) -> Option<String> {
        let (at, counts) = self.before.front()?;
        self.last.pace_since((*at, counts))
    }
}

#[cfg(test)]
mod tests {
    use interval_queue::task_contract::Counted;

    use super::*;
    use crate::watch::scene::tasks;

    #[test]
    fn the_rate_is_that_of_ten_seconds_and_little_is_remembered() {
        let queue = QueueName::new("mail").unwrap();
        let read = |second: u64| Summary {
            at: Micros::from_millis(second * 1_000),
            ..tasks(&[(Counted::EverDone, second * second), (Counted::EverAdded, 9_000)])
        };
        let mut stored = Stored::new(queue, read(100), Duration::ZERO);
        assert_eq!(stored.rate(), None);
        (101..=400).for_each(|second| stored.feed(read(second), Duration::ZERO));
        // 400² - 390² in ten seconds.
        assert_eq!(stored.rate().unwrap(), "790 ended per second, in the last 10s");
        assert!(stored.before.len() <= 12, "{}", stored.before.len());
        stored.feed(read(50), Duration::ZERO);
        assert_eq!(stored.rate(), None, "the clock was stepped back");
    }
}
