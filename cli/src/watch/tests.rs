//! Reads of queues for the tests of this folder, in microseconds of the store's clock.

use interval_queue::{
    Label, Micros, Presence, QueueName, Rates, Record, Settings, ShardId, Snapshot, Ticket,
    task_contract::Counted,
};
use interval_queue_tasks::Condition;

use super::{messages::Message, queue_state::QueueState};
use crate::tasks::Summary;

/// The label of a shard is also its id. Leases are 5 s.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    snapshot: Snapshot,
    lease: Micros,
}

impl Scene {
    pub(crate) fn new(interval: u64) -> Self {
        let settings = Settings { rates: Rates::every(Micros::new(interval)), max_running: None };
        let snapshot = Snapshot { at: Micros::ZERO, record: Record::new(settings) };
        Self { snapshot, lease: Micros::from_millis(5000) }
    }

    fn with(mut self, change: impl FnOnce(&mut Snapshot)) -> Self {
        change(&mut self.snapshot);
        self
    }

    pub(crate) fn at(self, at: u64) -> Self {
        self.with(|snapshot| snapshot.at = Micros::new(at))
    }

    pub(crate) fn ticket(self, ticket: u64) -> Self {
        self.with(|snapshot| snapshot.record.ticket = Ticket::new(ticket))
    }

    pub(crate) fn current(self, current: u64) -> Self {
        self.with(|snapshot| snapshot.record.current = Ticket::new(current))
    }

    pub(crate) fn free_at(self, free_at: u64) -> Self {
        self.with(|snapshot| {
            let meter = &mut snapshot.record.meters[0];
            meter.tat = Micros::new(free_at);
            snapshot.record.last_slot = meter.tat - meter.interval;
        })
    }

    pub(crate) fn held_until(self, held_until: u64) -> Self {
        self.with(|snapshot| snapshot.record.held_until = Micros::new(held_until))
    }

    pub(crate) fn paused(self) -> Self {
        self.with(|snapshot| snapshot.record.paused = true)
    }

    pub(crate) fn max_running(self, limit: u32) -> Self {
        self.with(|snapshot| snapshot.record.max_running = Some(limit))
    }

    /// Applies to shards that are added later, from the current `at`.
    pub(crate) fn lease(mut self, lease: u64) -> Self {
        self.lease = Micros::new(lease);
        self
    }

    pub(crate) fn shard(self, label: &str, head: u64) -> Self {
        self.presence(label, Some(head), 0)
    }

    /// It waits for nothing.
    pub(crate) fn runs(self, label: &str, running: u32) -> Self {
        self.presence(label, None, running)
    }

    fn presence(self, label: &str, head: Option<u64>, running: u32) -> Self {
        let presence = Presence {
            head: head.map(Ticket::new),
            weight: 1,
            running,
            expires_at: self.snapshot.at + self.lease,
            sequence: 1,
            last_take: None,
            granted: Vec::new(),
            label: Label::new(label).unwrap(),
        };
        let id = ShardId::new(label.replace(|c: char| !c.is_ascii_alphanumeric(), "-")).unwrap();
        self.with(|snapshot| {
            snapshot.record.shards.insert(id, presence);
        })
    }

    pub(crate) fn build(&self) -> Snapshot {
        self.snapshot.clone()
    }
}

pub(crate) fn tasks(counts: &[(Counted, u64)]) -> Summary {
    Summary {
        at: Micros::ZERO,
        counts: counts.iter().copied().collect(),
        lost: 0,
        conditions: vec![Condition::Running { running: 8, limit: None }],
        oldest: None,
        workers: 1,
        runs: Vec::new(),
        upcoming: Vec::new(),
    }
}

pub(crate) fn name(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

/// The queue has no tasks.
pub(crate) fn read(queue: &str, scene: Scene) -> Message {
    let state = QueueState { rate: Some(scene.build()), ..QueueState::default() };
    Message::Read(name(queue), Box::new(state))
}

pub(crate) fn read_tasks(queue: &str, rate: Option<Scene>, tasks: Summary) -> Message {
    let rate = rate.map(|scene| scene.build());
    Message::Read(name(queue), Box::new(QueueState { rate, tasks: Some(tasks), error: None }))
}
