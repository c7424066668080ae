//! Shards that say what a test wants them to say.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "no test needs all of it, and each fails by panicking"
)]

use std::time::Duration;

use interval_queue_contract::{
    Ask, Change, Changed, Command, Label, Late, MaxRunning, Memory, Micros, OnExisting, QueueName, ShardId,
    SharedState, Snapshot, StateError, StateErrorKind, Step, Stepped, Take, Ticket,
};
use interval_queue_redis::RedisState;

/// The queue of most tests.
pub fn mail() -> QueueName {
    QueueName::new("mail").unwrap()
}

/// Short, so that a test of time-outs is.
pub const TIMEOUT: Duration = Duration::from_millis(500);

pub async fn connect(url: &str) -> RedisState {
    RedisState::builder(url).timeout(TIMEOUT).connect().await.unwrap()
}

pub fn opening(interval_ms: u64) -> Command {
    let change = Change::Open {
        interval: Some(Micros::from_millis(interval_ms)),
        max_running: MaxRunning::Keep,
        on_existing: OnExisting::Replace,
    };
    Command::Change(change, Memory::default())
}

pub async fn change(state: &RedisState, change: Change, memory: Memory) -> Result<Changed, StateError> {
    state.apply(&mail(), Command::Change(change, memory)).await?.changed()
}

pub async fn open(state: &RedisState) -> Result<Changed, StateError> {
    state.apply(&mail(), opening(1000)).await?.changed()
}

pub async fn read(state: &RedisState) -> Option<Snapshot> {
    state.apply(&mail(), Command::Read).await.unwrap().read().unwrap()
}

/// What kind of error it is.
pub fn kind<T: std::fmt::Debug>(result: Result<T, StateError>) -> StateErrorKind {
    result.unwrap_err().kind()
}

/// A shard that keeps to the contract.
pub struct Shard {
    pub id: &'static str,
    pub sequence: u64,
    pub memory: Memory,
    pub waiting: Vec<Ticket>,
    pub lease: Micros,
    pub lead: Micros,
}

impl Shard {
    pub fn new(id: &'static str) -> Self {
        Self {
            id,
            sequence: 0,
            memory: Memory::default(),
            waiting: Vec::new(),
            lease: Micros::from_millis(60_000),
            lead: Micros::ZERO,
        }
    }

    /// A step that asks for all that waits and takes `count` tickets.
    pub async fn step(&mut self, state: &RedisState, count: u32) -> Result<Stepped, StateError> {
        self.sequence += 1;
        let ask = self.waiting.iter().map(|&ticket| Ask { ticket, weight: 1 });
        let step = Step {
            shard: ShardId::new(self.id).unwrap(),
            label: Label::new("a test").unwrap(),
            sequence: self.sequence,
            memory: self.memory,
            lease: self.lease,
            lead: self.lead,
            take: (count > 0).then(|| Take {
                request: self.sequence,
                count,
                weights: vec![1; count as usize],
            }),
            ask: ask.collect(),
            then: None,
            late: Late::NextSlot,
            running: 0,
            given_up: None,
        };
        let stepped = state.apply(&mail(), Command::Step(step)).await?.stepped()?;
        self.memory.learn(stepped.memory);
        if let Some(taken) = stepped.taken {
            self.waiting.extend((0..u64::from(taken.count)).map(|n| taken.first.after(n)));
        }
        for grant in &stepped.grants {
            self.waiting.retain(|ticket| *ticket != grant.ticket);
        }
        Ok(stepped)
    }
}

/// Tries until it works, for about half a minute.
pub async fn until_it_works(state: &RedisState) -> Changed {
    for _ in 0..300 {
        match open(state).await {
            Ok(changed) => return changed,
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the state did not recover");
}
