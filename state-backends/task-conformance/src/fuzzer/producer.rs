//! The producer: adds batches, each with the same ids until a reply comes.

use std::collections::{BTreeMap, BTreeSet};

use interval_queue_contract::StateErrorKind;
use interval_queue_task_contract::{Add, Command, Reply};

use super::{Event, Fuzzer, Outcome, Sender, plan::seconds};

#[derive(Debug, Default)]
pub(super) struct Producer {
    /// First send of each batch, by first task.
    made: BTreeMap<usize, u64>,
    answered: BTreeSet<(usize, bool)>,
    is_done: bool,
}

impl Producer {
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }
}

impl Fuzzer {
    pub(super) fn produce(&mut self, first: usize, size: usize, with_edges: bool, again: bool) {
        if again && self.producer.answered.contains(&(first, with_edges)) {
            return;
        }
        if first >= self.plan.tasks.len() {
            self.producer.is_done = true;
            return;
        }
        let size = if size == 0 { self.rng.usize(1..=5) } else { size };
        let last = self.plan.tasks.len().min(first + size);
        let mut tasks = self.plan.tasks[first..last].to_vec();
        if !with_edges {
            tasks.iter_mut().for_each(|task| task.edges.clear());
        }
        let made = *self.producer.made.entry(first).or_insert(self.now);
        let age = seconds(self.now - made);
        let from = Sender::Producer { first, size, with_edges };
        // Plans have fewer tasks than `u32` has numbers.
        let sequence = u32::try_from(first).unwrap_or_default();
        self.send(from, Command::Add(Add { tasks: tasks.into(), sequence, age }), 0.25);
        self.at(self.now + 100, Event::Produce { first, size, with_edges, again: true });
    }

    pub(super) fn produced(&mut self, first: usize, size: usize, with_edges: bool, outcome: Outcome) {
        if !self.producer.answered.insert((first, with_edges)) {
            return;
        }
        match outcome {
            Ok(Reply::Added(added)) => self.judge.accepted(&added, &self.stored),
            // An upstream was purged or never added: add the batch without edges.
            Err(StateErrorKind::NotFound) if with_edges => return self.produce(first, size, false, false),
            _ => {}
        }
        let at = self.now + self.rng.u64(0..=150);
        self.at(at, Event::Produce { first: first + size, size: 0, with_edges: true, again: false });
    }
}
