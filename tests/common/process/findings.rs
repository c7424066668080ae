//! What the promises make of a log.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use interval_queue::MAX_LEAD;

use super::{Log, Slot, Start, micros, said::Said};

/// How late a start may be that no delay of the host explains. Shards give up what is later than an interval
/// or a few, and read the state's clock off replies that travel.
const LATE: u64 = 300_000;
/// The least that shards put up with.
const TOLERANCE: u64 = 10_000;
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
    /// Started without a slot, before it, or in one that was used already.
    pub without_grant: Vec<Start>,
    /// Started long after its slot, for no reason of the host's: its shard should have given it up.
    pub stale: Vec<(Start, Grant)>,
}

/// A slot, and when its shard heard of it, on the tests' clock.
#[derive(Clone, Copy, Debug)]
pub struct Grant {
    slot: Slot,
    heard: u64,
}

/// What a worker has been granted and not used.
#[derive(Default)]
struct InHand {
    /// What it has not heard of.
    travelling: Vec<Slot>,
    /// What it has, by ticket.
    grants: HashMap<u64, Grant>,
    /// How often it asked for what it had given up, before and since its last start.
    given_up: [u32; 2],
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

    /// Asserts that slots are spaced, but for so many that come early, and that each job started in a slot of
    /// its own, not long after it.
    pub fn assert_paced(&self, interval: Duration, early: usize) {
        let close = self.too_close(interval);
        assert!(close.len() <= early, "slots closer than {interval:?}: {close:?}");
        let Use { without_grant, stale } = self.use_of_slots(false);
        assert!(without_grant.is_empty(), "had no slot: {without_grant:?}");
        assert!(stale.is_empty(), "G5: started long after their slots: {stale:?}");
    }

    /// Pairs of slots that are closer than the interval.
    pub fn too_close(&self, interval: Duration) -> Vec<[Slot; 2]> {
        let slots = self.slots();
        let pairs = slots.windows(2).map(|pair| [pair[0], pair[1]]);
        pairs.filter(|[first, second]| second.at - first.at < micros(interval)).collect()
    }

    /// What became of the slots that were granted. Where the clock of the state is stepped, slots and starts
    /// are on different ones; then the shard's own clock says how late a start was.
    pub fn use_of_slots(&self, is_clock_stepped: bool) -> Use {
        let mut found = Use::default();
        let mut in_hand: HashMap<usize, InHand> = HashMap::new();
        let mut starts = Vec::new();
        // Each worker is heard in the order in which it speaks.
        self.each(|worker, said| {
            let hand = in_hand.entry(worker).or_default();
            match *said {
                Said::Slot { at, ticket, granted } => {
                    hand.travelling.push(Slot { at, ticket, worker, granted });
                }
                Said::Heard { at: heard } => {
                    let arrived = hand.travelling.drain(..).map(|slot| (slot.ticket, Grant { slot, heard }));
                    hand.grants.extend(arrived);
                }
                Said::Returned { .. } => hand.given_up[1] += 1,
                Said::Start { at, job, ticket, late } => {
                    let start = Start { at, worker, job, ticket, late };
                    let [before, since] = hand.given_up;
                    hand.given_up = [since, 0];
                    match hand.grants.remove(&ticket) {
                        Some(grant) if is_clock_stepped || grant.slot.at <= at + SLEW => {
                            starts.push((start, grant, before + since));
                        }
                        _ => found.without_grant.push(start),
                    }
                }
                _ => {}
            }
        });
        let is_stale =
            |(start, grant, given_up): &_| self.is_stale(start, grant, *given_up, is_clock_stepped);
        starts.retain(is_stale);
        found.stale = starts.into_iter().map(|(start, grant, _)| (start, grant)).collect();
        found
    }

    /// Whether a start came so long after its slot, or after its shard heard of that, or the shard heard of
    /// it so late, that it should have been given up. What it puts up with doubles each time that it has
    /// given something up.
    fn is_stale(&self, start: &Start, grant: &Grant, given_up: u32, is_clock_stepped: bool) -> bool {
        let due = if is_clock_stepped { start.at - start.late } else { grant.slot.at };
        let usable_at = due.max(grant.heard);
        let (by_host, by_reply) = (start.at.saturating_sub(usable_at), usable_at - due);
        if by_host <= LATE && by_reply <= MAX_LEAD.get() + LATE {
            return false;
        }
        let explained = LATE + self.explained(due, start.at);
        let [by_host_at_most, by_reply_at_most] =
            [TOLERANCE, MAX_LEAD.get()].map(|least| explained + (least << given_up.min(10)));
        // What was about to start when its process was stopped does so when it goes on.
        let was_stopped = self.collect(|worker, said| match *said {
            Said::Frozen { at } if worker == start.worker => Some((usable_at..=start.at).contains(&at)),
            _ => None,
        });
        (by_host > by_host_at_most || by_reply > by_reply_at_most) && !was_stopped.contains(&true)
    }

    /// Asserts that these instants, slots or starts, kept the rate, as far as the host let them.
    pub fn assert_kept_pace(&self, instants: impl IntoIterator<Item = u64>, interval: Duration) {
        /// What is lost of a slot when all who have to ask for it, and the server, are late.
        const WAKES: f64 = 10.0;
        let instants: Vec<_> = instants.into_iter().collect();
        let late = self.mean_lateness(instants[0], instants[instants.len() - 1]);
        let left_by_host = 1.0 - (WAKES * late / micros(interval) as f64).min(1.0);
        if left_by_host == 0.0 {
            return;
        }
        let share = share_of_rate(&instants, interval);
        assert!(
            share > 0.8 * left_by_host,
            "{:.0} % of the nominal rate, and the host left {:.0} %",
            share * 100.0,
            left_by_host * 100.0
        );
    }
}

/// Which part of the nominal rate these instants reached. The three longest gaps are left out, and of many a
/// tenth: that a machine stalls is not the queue's doing.
pub fn share_of_rate(instants: &[u64], interval: Duration) -> f64 {
    let mut gaps: Vec<_> = instants.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() >= 10, "too few to tell the rate: {instants:?}");
    gaps.sort_unstable();
    gaps.truncate(gaps.len() - (gaps.len() / 10).max(3));
    let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
    micros(interval) as f64 / mean
}
