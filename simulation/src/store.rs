//! The simulated store: the records, under the real rules, and what can happen to a store and its
//! clock.

use std::collections::{BTreeMap, VecDeque};

use interval_queue_contract::{Command, Micros, QueueName, Reading, Record, Reply, StateError};

/// The rules a store applies: [`rules::apply`](interval_queue_contract::rules::apply), unless something is to
/// be proved.
pub type Rules = fn(&mut Option<Record>, &Reading, &Command) -> Result<Reply, StateError>;

/// The store's clock at the beginning.
const EPOCH: Micros = Micros::from_millis(1_000_000_000);

/// Kept for a failover or an old copy.
const VERSIONS: usize = 256;

pub(crate) struct Store {
    rules: Rules,
    records: BTreeMap<QueueName, Kept>,
    /// Total of clock steps, in microseconds.
    stepped: i64,
    server: u64,
    keeps_versions: bool,
}

#[derive(Default)]
struct Kept {
    record: Option<Record>,
    /// The latest last.
    versions: VecDeque<Option<Record>>,
}

impl Store {
    pub(crate) fn new(rules: Rules, keeps_versions: bool) -> Self {
        Self { rules, records: BTreeMap::new(), stepped: 0, server: 1, keeps_versions }
    }

    /// `since`: the command's arrival after the beginning.
    pub(crate) fn apply(
        &mut self,
        queue: &QueueName,
        command: &Command,
        since: Micros,
    ) -> Result<Reply, StateError> {
        let reading = Reading { now: self.clock(since), incarnation: format!("server {}", self.server) };
        let kept = self.records.entry(queue.clone()).or_default();
        let writes = !matches!(command, Command::Read);
        if self.keeps_versions && writes {
            kept.versions.push_back(kept.record.clone());
            if kept.versions.len() > VERSIONS {
                kept.versions.pop_front();
            }
        }
        (self.rules)(&mut kept.record, &reading, command)
    }

    pub(crate) fn record(&self, queue: &QueueName) -> Option<&Record> {
        self.records.get(queue)?.record.as_ref()
    }

    pub(crate) fn queues(&self) -> Vec<QueueName> {
        self.records.iter().filter(|(_, kept)| kept.record.is_some()).map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn clock(&self, since: Micros) -> Micros {
        let now = (EPOCH + since).get();
        Micros::new(now.saturating_add_signed(self.stepped))
    }

    pub(crate) fn step_clock(&mut self, micros: i64) {
        self.stepped += micros;
    }

    pub(crate) fn restart(&mut self) {
        self.server += 1;
    }

    pub(crate) fn forget(&mut self) {
        self.records.values_mut().for_each(|kept| kept.record = None);
    }

    /// Undoes the last `writes` writes of each queue.
    pub(crate) fn rewind(&mut self, writes: usize) {
        for kept in self.records.values_mut() {
            for _ in 0..writes {
                if let Some(earlier) = kept.versions.pop_back() {
                    kept.record = earlier;
                }
            }
        }
    }
}
