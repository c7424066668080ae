//! In which order jobs started.

use crate::notes::Start;

/// How many pairs of jobs started in another order than they were added: one was in the queue before the
/// other was offered, and started after it. Of a library that does not say when a job is in the queue, the
/// call that offered it counts.
pub(crate) fn inversions(starts: &[Start]) -> u64 {
    let known = |start: &Start| start.accepted.unwrap_or(start.called);
    let mut accepted: Vec<u64> = starts.iter().map(known).collect();
    accepted.sort_unstable();
    let mut latest_first: Vec<&Start> = starts.iter().collect();
    latest_first.sort_by_key(|start| std::cmp::Reverse(start.started));
    // Holds the jobs that started after the one that is looked at, by the rank of their acceptance.
    let mut later = Tally::new(accepted.len());
    let mut pairs = 0;
    for at_once in latest_first.chunk_by(|a, b| a.started == b.started) {
        for start in at_once {
            pairs += later.below(accepted.partition_point(|accepted| *accepted < start.called));
        }
        for start in at_once {
            // Those accepted at the same instant may share a rank: nobody asks between them.
            later.add(accepted.partition_point(|accepted| *accepted < known(start)));
        }
    }
    pairs
}

/// Counts by rank: both steps take logarithmic time (P. Fenwick, "A new data structure for cumulative
/// frequency tables", 1994).
struct Tally(Vec<u64>);

impl Tally {
    fn new(ranks: usize) -> Self {
        Self(vec![0; ranks + 1])
    }

    fn add(&mut self, rank: usize) {
        let mut at = rank + 1;
        while at < self.0.len() {
            self.0[at] += 1;
            at += at & at.wrapping_neg();
        }
    }

    /// How many were added with a lower rank.
    fn below(&self, rank: usize) -> u64 {
        let mut at = rank;
        let mut count = 0;
        while at > 0 {
            count += self.0[at];
            at &= at - 1;
        }
        count
    }
}
