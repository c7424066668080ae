//! Shards that say what a test wants them to say.

use interval_queue_contract::{
    Ask, Command, Label, Memory, Micros, ShardId, SharedState, StateError, Step, Stepped, Take, Ticket,
};

use crate::commands::mail;

/// A shard that keeps to the contract, of the queue `mail`.
#[derive(Clone, Debug)]
pub struct Shard {
    /// Its name.
    pub id: String,
    /// The number of its last step.
    pub sequence: u64,
    /// The number of its next take. One that got no answer is tried again under the same number.
    pub request: u64,
    /// What it has learned of the record.
    pub memory: Memory,
    /// Whether it asks at once for the tickets that it takes. Yes.
    pub is_eager: bool,
    /// The tickets it asks for.
    pub waiting: Vec<Ticket>,
    /// When it counts as dead. A minute.
    pub lease: Micros,
    /// How early it asks. Zero.
    pub lead: Micros,
}

impl Shard {
    /// One that has said nothing yet.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            sequence: 0,
            request: 1,
            memory: Memory::default(),
            is_eager: true,
            waiting: Vec::new(),
            lease: Micros::from_millis(60_000),
            lead: Micros::ZERO,
        }
    }

    /// A step that asks for all that waits and takes `count` tickets.
    ///
    /// # Errors
    ///
    /// Those of the state.
    pub async fn step(&mut self, state: &dyn SharedState, count: u32) -> Result<Stepped, StateError> {
        self.sequence += 1;
        let ask = self.waiting.iter().map(|&ticket| Ask { ticket, weight: 1 });
        let shard = ShardId::new(&*self.id).unwrap();
        let step = Step {
            label: Label::new("a test").unwrap(),
            lead: self.lead,
            take: (count > 0).then(|| Take {
                request: self.request,
                count,
                weights: vec![1; if self.is_eager { count as usize } else { 0 }],
            }),
            ask: ask.collect(),
            ..Step::idle(shard, self.sequence, self.memory, self.lease)
        };
        let stepped = state.apply(&mail(), Command::Step(step)).await?.stepped()?;
        self.memory.learn(stepped.memory);
        if let Some(taken) = stepped.taken {
            self.request += 1;
            self.waiting.extend(taken.tickets());
        }
        for grant in &stepped.grants {
            self.waiting.retain(|ticket| *ticket != grant.ticket);
        }
        Ok(stepped)
    }
}
