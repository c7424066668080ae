//! What is known of a scene: all that its workers said.

use std::{collections::HashMap, fmt, sync::Mutex};

use super::{now, said::Said, scene::wait_until};

/// A job that started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Start {
    pub at: u64,
    pub worker: usize,
    pub job: u64,
    /// In whose slot. Zero: it started alone.
    pub ticket: u64,
    /// How long after its slot, by the clock of its shard.
    pub late: u64,
}

/// A slot that was granted. In order of these are those of all tickets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    pub at: u64,
    pub ticket: u64,
    pub worker: usize,
    /// When the state granted it.
    pub granted: u64,
}

/// All that was said, in the order in which it was heard.
#[derive(Debug, Default)]
pub struct Log(Mutex<Heard>);

#[derive(Debug, Default)]
pub struct Heard {
    said: Vec<(usize, Said)>,
    /// How many jobs started.
    pub starts: usize,
    /// What workers said about failures of the state.
    pub troubles: Vec<String>,
    /// How many orders each worker has carried out.
    pub done: HashMap<usize, u64>,
    panic: Option<String>,
}

impl Log {
    pub(super) fn hear(&self, worker: usize, line: &str) {
        if let Some(said) = Said::read(line) {
            self.note(worker, said);
        }
    }

    pub(super) fn note(&self, worker: usize, said: Said) {
        let mut heard = self.0.lock().unwrap();
        match &said {
            Said::Start { .. } => heard.starts += 1,
            Said::Trouble(text) => heard.troubles.push(text.clone()),
            Said::Done => *heard.done.entry(worker).or_default() += 1,
            Said::Panic(text) => heard.panic = Some(format!("worker {worker} panicked: {text}")),
            _ => {}
        }
        heard.said.push((worker, said));
    }

    pub(super) fn wait_until(&self, what: &str, is_so: impl Fn(&Heard) -> bool) {
        wait_until(what, || {
            let heard = self.0.lock().unwrap();
            assert!(heard.panic.is_none(), "waited until {what}, but {:?}", heard.panic);
            is_so(&heard)
        });
    }

    /// How many jobs have started.
    pub fn count_of_starts(&self) -> usize {
        self.0.lock().unwrap().starts
    }

    /// How many jobs were refused.
    pub fn count_of_refused(&self) -> usize {
        self.collect(|_, said| matches!(said, Said::Refused { .. }).then_some(())).len()
    }

    pub(super) fn collect<T>(&self, pick: impl Fn(usize, &Said) -> Option<T>) -> Vec<T> {
        self.0.lock().unwrap().said.iter().filter_map(|(worker, said)| pick(*worker, said)).collect()
    }

    /// Looks at all that was said.
    pub(super) fn each(&self, mut look: impl FnMut(usize, &Said)) {
        self.0.lock().unwrap().said.iter().for_each(|(worker, said)| look(*worker, said));
    }

    /// All starts in the order of time.
    pub fn starts(&self) -> Vec<Start> {
        let mut starts = self.collect(|worker, said| match *said {
            Said::Start { at, job, ticket, late } => Some(Start { at, worker, job, ticket, late }),
            _ => None,
        });
        starts.sort();
        starts
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

    /// All slots in the order in which they were heard of.
    pub(super) fn grants(&self) -> Vec<Slot> {
        self.collect(|worker, said| match *said {
            Said::Slot { at, ticket, granted } => Some(Slot { at, ticket, worker, granted }),
            _ => None,
        })
    }

    /// All slots in the order of time.
    pub fn slots(&self) -> Vec<Slot> {
        let mut slots = self.grants();
        slots.sort();
        slots
    }

    /// The slots that lie between two instants.
    pub fn slots_between(&self, from: u64, to: u64) -> Vec<Slot> {
        self.slots().into_iter().filter(|slot| (from..to).contains(&slot.at)).collect()
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
        self.0.lock().unwrap().troubles.clone()
    }

    /// Asserts that the state failed nobody, but for a host that stands still for longer than commands wait.
    pub fn assert_untroubled(&self) {
        const STOOD_STILL: [&str; 4] = ["has held", "was held", "in time", "did not answer within"];
        let mut troubles = self.troubles();
        troubles.retain(|text| !STOOD_STILL.iter().any(|sign| text.contains(sign)));
        assert!(troubles.is_empty(), "G10: nothing to tell of: {troubles:?}");
    }

    /// How many of these failures were of a kind.
    pub fn count_of_troubles(&self, of_kind: &str) -> usize {
        self.0.lock().unwrap().troubles.iter().filter(|text| text.contains(of_kind)).count()
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Of a long log the end tells enough.
        const MOST: usize = 5_000;
        let heard = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let first = heard.said.iter().filter_map(|(_, said)| said.at()).min().unwrap_or(0);
        for (worker, said) in &heard.said[heard.said.len().saturating_sub(MOST)..] {
            match said.at() {
                Some(at) => writeln!(f, "{worker} +{:.3} ms {said:?}", (at - first) as f64 / 1000.0)?,
                None => writeln!(f, "{worker} {said:?}")?,
            }
        }
        Ok(())
    }
}
