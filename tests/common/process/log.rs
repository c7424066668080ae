//! What is known of a scene: all that its workers said, and what the promises make of it.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Mutex,
    time::Duration,
};

use super::{micros, now, scene::wait_until};

/// How late a start may be on a machine that is busy with other things.
const LATE: Duration = Duration::from_millis(1_500);

/// What was said by a worker, or by the test about it. Instants are microseconds on the host's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The test gave it so many more jobs.
    Given(u64),
    /// The test killed it.
    Killed,
    /// It carried out an order.
    Done,
    /// A job of it has its ticket.
    Ticket { ticket: u64, job: u64 },
    /// It was granted a slot.
    Slot { at: u64, ticket: u64 },
    /// A job of it started.
    Start { at: u64, job: u64 },
    /// A job of it ended.
    End { at: u64, job: u64 },
    /// The state failed it.
    Trouble(String),
    /// It panicked.
    Panic(String),
}

impl Said {
    fn read(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        let numbers = || {
            let (first, second) = rest.split_once(' ').unwrap();
            (first.parse().unwrap(), second.parse().unwrap())
        };
        Some(match word {
            "done" => Self::Done,
            "trouble" => Self::Trouble(rest.to_owned()),
            "panic" => Self::Panic(rest.to_owned()),
            "ticket" => {
                let (ticket, job) = numbers();
                Self::Ticket { ticket, job }
            }
            "slot" => {
                let (at, ticket) = numbers();
                Self::Slot { at, ticket }
            }
            "start" => {
                let (at, job) = numbers();
                Self::Start { at, job }
            }
            "end" => {
                let (at, job) = numbers();
                Self::End { at, job }
            }
            // The test harness in the worker talks, too.
            _ => return None,
        })
    }
}

/// A job that started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Start {
    pub at: u64,
    pub worker: usize,
    pub job: u64,
}

/// A slot that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    pub at: u64,
    pub ticket: u64,
    pub worker: usize,
}

/// All that was said, in the order in which it was heard.
#[derive(Debug, Default)]
pub struct Log(Mutex<Vec<(usize, Said)>>);

impl Log {
    pub(super) fn hear(&self, worker: usize, line: &str) {
        if let Some(said) = Said::read(line) {
            self.note(worker, said);
        }
    }

    pub(super) fn note(&self, worker: usize, said: Said) {
        self.0.lock().unwrap().push((worker, said));
    }

    pub(super) fn wait_until(&self, what: &str, is_so: impl Fn(&[(usize, Said)]) -> bool) {
        wait_until(what, || {
            let said = self.0.lock().unwrap().clone();
            let panic = said.iter().find(|(_, said)| matches!(said, Said::Panic(_)));
            assert!(panic.is_none(), "waited until {what}, but {panic:?}");
            is_so(&said)
        });
    }

    fn collect<T>(&self, pick: impl Fn(usize, &Said) -> Option<T>) -> Vec<T> {
        self.0.lock().unwrap().iter().filter_map(|(worker, said)| pick(*worker, said)).collect()
    }

    /// All starts in the order of time.
    pub fn starts(&self) -> Vec<Start> {
        let mut starts = self.collect(|worker, said| match *said {
            Said::Start { at, job } => Some(Start { at, worker, job }),
            _ => None,
        });
        starts.sort();
        starts
    }

    /// All starts of one worker.
    pub fn starts_of(&self, worker: usize) -> Vec<Start> {
        self.starts().into_iter().filter(|start| start.worker == worker).collect()
    }

    /// All starts from an instant on.
    pub fn starts_since(&self, begin: u64) -> Vec<Start> {
        self.starts().into_iter().filter(|start| start.at >= begin).collect()
    }

    /// When jobs ended.
    pub fn ends(&self) -> Vec<u64> {
        self.collect(|_, said| match *said {
            Said::End { at, .. } => Some(at),
            _ => None,
        })
    }

    /// All slots in the order of time.
    pub fn slots(&self) -> Vec<Slot> {
        let mut slots = self.collect(|worker, said| match *said {
            Said::Slot { at, ticket } => Some(Slot { at, ticket, worker }),
            _ => None,
        });
        slots.sort();
        slots
    }

    /// The slots that are yet to come.
    pub fn slots_to_come(&self) -> Vec<Slot> {
        let now = now();
        self.slots().into_iter().filter(|slot| slot.at > now).collect()
    }

    /// The ticket of each job that has one, by worker and job.
    pub fn tickets(&self) -> HashMap<(usize, u64), u64> {
        let tickets = self.collect(|worker, said| match *said {
            Said::Ticket { ticket, job } => Some(((worker, job), ticket)),
            _ => None,
        });
        tickets.into_iter().collect()
    }

    /// What workers said about failures of the state.
    pub fn troubles(&self) -> Vec<String> {
        self.collect(|_, said| match said {
            Said::Trouble(text) => Some(text.clone()),
            _ => None,
        })
    }

    /// Asserts that each job of each worker that lives started once, and no job of a dead one twice.
    pub fn assert_nothing_lost_or_doubled(&self) {
        let mut given: BTreeMap<usize, u64> = BTreeMap::new();
        for (worker, count) in self.collect(|worker, said| match *said {
            Said::Given(count) => Some((worker, count)),
            _ => None,
        }) {
            *given.entry(worker).or_default() += count;
        }
        let killed = self.collect(|worker, said| (*said == Said::Killed).then_some(worker));
        for (worker, count) in given {
            let mut jobs: Vec<_> = self.starts_of(worker).iter().map(|start| start.job).collect();
            jobs.sort_unstable();
            if killed.contains(&worker) {
                let twice = jobs.windows(2).find(|pair| pair[0] == pair[1]);
                assert!(
                    twice.is_none(),
                    "a job of worker {worker}, which was killed, started twice: {twice:?}"
                );
            } else {
                assert_eq!(jobs, (0..count).collect::<Vec<_>>(), "the jobs of worker {worker}");
            }
        }
    }

    /// Asserts that no two jobs have the same ticket.
    pub fn assert_tickets_unique(&self) {
        let mut tickets: Vec<_> = self.tickets().into_values().collect();
        tickets.sort_unstable();
        let twice = tickets.windows(2).find(|pair| pair[0] == pair[1]);
        assert!(twice.is_none(), "taken twice: {twice:?}");
    }

    /// Asserts that slots are spaced, but for so many that come early, and that each job started at or after a slot of its
    /// own, not much later.
    pub fn assert_paced(&self, interval: Duration, early: usize) {
        let close = self.too_close(interval);
        assert!(close.len() <= early, "slots closer than {interval:?}: {close:?}");
        let late: Vec<_> = self.lateness().into_iter().filter(|(_, late)| *late > LATE).collect();
        // One may have been just about to start when its process was stopped.
        assert!(late.len() <= 1, "started long after their slots: {late:?}");
    }

    /// Pairs of slots that are closer than the interval.
    pub fn too_close(&self, interval: Duration) -> Vec<[Slot; 2]> {
        let slots = self.slots();
        let pairs = slots.windows(2).map(|pair| [pair[0], pair[1]]);
        pairs.filter(|[first, second]| second.at - first.at < micros(interval)).collect()
    }

    /// How long after its slot each job started. Which of its worker's slots a job used is not known: here each of them, from
    /// the last on, has the latest that was left.
    fn lateness(&self) -> Vec<(Start, Duration)> {
        // The clock of the host may be slewed while a start waits for its slot.
        const SLEW: u64 = 1_000;
        let mut free = self.slots();
        let pair = |start: Start| {
            let usable = |slot: &Slot| slot.worker == start.worker && slot.at <= start.at + SLEW;
            let slot = free.iter().rposition(usable);
            let slot = free.remove(slot.unwrap_or_else(|| panic!("{start:?} had no slot")));
            (start, Duration::from_micros(start.at.saturating_sub(slot.at)))
        };
        self.starts().into_iter().rev().map(pair).collect()
    }

    /// Asserts that ten starts in a row take nearly nine intervals, as far as can be asked for on a busy machine.
    pub fn assert_no_bursts(&self, interval: Duration) {
        const WINDOW: usize = 10;
        let starts = self.starts();
        let least = micros(interval) * (WINDOW as u64 - 1) * 4 / 5;
        let dense = starts.windows(WINDOW).filter(|window| window[WINDOW - 1].at - window[0].at < least);
        // A machine that stalls makes starts late, and those after it punctual.
        let dense: Vec<_> = dense.map(|window| window[0]).collect();
        assert!(dense.len() * 10 <= starts.len(), "of {} starts too many in bursts: {dense:?}", starts.len());
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

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let log = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let instant = |said: &Said| match *said {
            Said::Slot { at, .. } | Said::Start { at, .. } | Said::End { at, .. } => Some(at),
            _ => None,
        };
        let first = log.iter().filter_map(|(_, said)| instant(said)).min().unwrap_or(0);
        for (worker, said) in &*log {
            match instant(said) {
                Some(at) => writeln!(f, "{worker} +{:.3} ms {said:?}", (at - first) as f64 / 1000.0)?,
                None => writeln!(f, "{worker} {said:?}")?,
            }
        }
        Ok(())
    }
}
