//! What the promises make of a log.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{Log, Slot, Start, micros, said::Said};

/// How late a start may be on a machine that is busy with other things.
const LATE: Duration = Duration::from_millis(1_500);
/// The clock of the host may be slewed while a start waits for its slot.
const SLEW: u64 = 1_000;

/// What became of the jobs.
#[derive(Debug, Default)]
pub struct Jobs {
    /// How many were accepted from workers that live.
    pub of_the_living: usize,
    /// Of these, those that never started: worker and job.
    pub lost: Vec<(usize, u64)>,
    /// Of all workers, those that started more than once.
    pub twice: Vec<(usize, u64)>,
    /// Those that were refused and started all the same.
    pub refused_but_started: Vec<(usize, u64)>,
}

/// How starts stand to the slots that were granted.
#[derive(Debug, Default)]
pub struct Use {
    /// Started without a slot of their own that had come.
    pub without_grant: Vec<Start>,
    /// Started long after their slots.
    pub late: Vec<(Start, Duration)>,
}

impl Log {
    /// What became of the jobs. Of a worker that was killed it is not known which jobs it had.
    pub fn jobs(&self) -> Jobs {
        let mut jobs = Jobs::default();
        let mut started: BTreeMap<(usize, u64), usize> = BTreeMap::new();
        for Start { worker, job, .. } in self.starts() {
            *started.entry((worker, job)).or_default() += 1;
        }
        let refused: BTreeSet<_> = self
            .collect(|worker, said| match *said {
                Said::Refused { job, .. } => Some((worker, job)),
                _ => None,
            })
            .into_iter()
            .collect();
        jobs.twice = started.iter().filter(|(_, times)| **times > 1).map(|(job, _)| *job).collect();
        jobs.refused_but_started = refused.iter().filter(|job| started.contains_key(job)).copied().collect();

        let killed = self.collect(|worker, said| (*said == Said::Killed).then_some(worker));
        let mut given: BTreeMap<usize, u64> = BTreeMap::new();
        for (worker, count) in self.collect(|worker, said| match *said {
            Said::Given(count) => Some((worker, count)),
            _ => None,
        }) {
            *given.entry(worker).or_default() += count;
        }
        for (worker, count) in given.into_iter().filter(|(worker, _)| !killed.contains(worker)) {
            let accepted = (0..count).map(|job| (worker, job)).filter(|job| !refused.contains(job));
            let accepted: Vec<_> = accepted.collect();
            jobs.of_the_living += accepted.len();
            jobs.lost.extend(accepted.into_iter().filter(|job| !started.contains_key(job)));
        }
        jobs
    }

    /// Asserts that each job of each worker that lives started once, and no job of a dead one twice.
    pub fn assert_nothing_lost_or_doubled(&self) {
        let jobs = self.jobs();
        assert!(jobs.lost.is_empty(), "G4: jobs of living workers never started: {:?}", jobs.lost);
        assert!(jobs.twice.is_empty(), "G5: jobs started twice: {:?}", jobs.twice);
        let refused = jobs.refused_but_started;
        assert!(refused.is_empty(), "G10: jobs were refused and started: {refused:?}");
    }

    /// Tickets that more than one job has.
    pub fn tickets_taken_twice(&self) -> Vec<u64> {
        let mut tickets: Vec<_> = self.tickets().into_values().collect();
        tickets.sort_unstable();
        tickets.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
    }

    /// Asserts that no two jobs have the same ticket.
    pub fn assert_tickets_unique(&self) {
        let twice = self.tickets_taken_twice();
        assert!(twice.is_empty(), "taken twice: {twice:?}");
    }

    /// Asserts that slots are spaced, but for so many that come early, and that each job started at or after a slot of its
    /// own, not much later.
    pub fn assert_paced(&self, interval: Duration, early: usize) {
        let close = self.too_close(interval);
        assert!(close.len() <= early, "slots closer than {interval:?}: {close:?}");
        let Use { without_grant, late } = self.use_of_slots();
        assert!(without_grant.is_empty(), "had no slot: {without_grant:?}");
        // One may have been just about to start when its process was stopped.
        assert!(late.len() <= 1, "started long after their slots: {late:?}");
    }

    /// Pairs of slots that are closer than the interval.
    pub fn too_close(&self, interval: Duration) -> Vec<[Slot; 2]> {
        let slots = self.slots();
        let pairs = slots.windows(2).map(|pair| [pair[0], pair[1]]);
        pairs.filter(|[first, second]| second.at - first.at < micros(interval)).collect()
    }

    /// Which slot each job used. Which of its worker's slots that is is not known: here each start, from the last on, has
    /// the latest that was left.
    pub fn use_of_slots(&self) -> Use {
        let mut found = Use::default();
        let mut free: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for Slot { at, worker, .. } in self.slots() {
            free.entry(worker).or_default().push(at);
        }
        for start in self.starts().into_iter().rev() {
            let slots = free.entry(start.worker).or_default();
            match slots.iter().rposition(|slot| *slot <= start.at + SLEW) {
                None => found.without_grant.push(start),
                Some(place) => {
                    let late = Duration::from_micros(start.at.saturating_sub(slots.remove(place)));
                    found.late.extend((late > LATE).then_some((start, late)));
                }
            }
        }
        found
    }

    /// The same where the clock of slots is not that of starts: whether a worker had been granted as many slots as it used.
    pub fn count_of_slots(&self) -> Use {
        let mut found = Use::default();
        let mut left: BTreeMap<usize, usize> = BTreeMap::new();
        // Each worker is heard in the order in which it speaks.
        for (worker, said) in self.collect(|worker, said| Some((worker, said.clone()))) {
            let left = left.entry(worker).or_default();
            match said {
                Said::Slot { .. } => *left += 1,
                Said::Start { at, job } if *left == 0 => found.without_grant.push(Start { at, worker, job }),
                Said::Start { .. } => *left -= 1,
                _ => {}
            }
        }
        found
    }

    /// Of all rows of ten starts, the first of each that took less than nine intervals, as far as can be asked for on a busy
    /// machine.
    pub fn dense(&self, interval: Duration) -> Vec<Start> {
        const WINDOW: usize = 10;
        let least = micros(interval) * (WINDOW as u64 - 1) * 4 / 5;
        let starts = self.starts();
        let windows = starts.windows(WINDOW);
        windows
            .filter(|window| window[WINDOW - 1].at - window[0].at < least)
            .map(|window| window[0])
            .collect()
    }

    /// Asserts that ten starts in a row take nearly nine intervals, but for few.
    pub fn assert_no_bursts(&self, interval: Duration) {
        let (dense, starts) = (self.dense(interval), self.count_of_starts());
        // A machine that stalls makes starts late, and those after it punctual.
        assert!(dense.len() * 10 <= starts, "of {starts} starts too many in bursts: {dense:?}");
    }

    /// Asserts that jobs started in the order of their tickets, but for few.
    pub fn assert_in_order(&self) {
        let tickets = self.tickets();
        let order = self.starts().into_iter().filter_map(|start| tickets.get(&(start.worker, start.job)));
        let order: Vec<_> = order.copied().collect();
        let inversions = order.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert!(inversions * 20 <= order.len(), "{inversions} inversions in {order:?}");
    }
}

/// Which part of the nominal rate these starts reached. The three longest gaps are left out: that a machine stalls is
/// not the queue's doing.
pub fn share_of_rate(starts: &[Start], interval: Duration) -> f64 {
    let mut gaps: Vec<_> = starts.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    assert!(gaps.len() >= 10, "too few starts to tell the rate: {starts:?}");
    gaps.sort_unstable();
    gaps.truncate(gaps.len() - 3);
    let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
    micros(interval) as f64 / mean
}

/// Asserts that these starts kept the rate, as far as can be asked for on a machine that others use, too.
pub fn assert_kept_pace(starts: &[Start], interval: Duration) {
    let share = share_of_rate(starts, interval);
    assert!(share > 0.8, "{:.0} % of the nominal rate", share * 100.0);
}
