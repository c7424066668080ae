//! The commands of a shard, made without one.

use interval_queue_contract::{
    Ask, Change, Command, Label, MaxRunning, Memory, Micros, OnExisting, Rates, ShardId, Step, Stepped, Take,
    Ticket,
};

/// Opens a queue of that interval.
pub(crate) fn open(interval: Micros) -> Command {
    let open = Change::Open {
        rates: Some(Rates::every(interval)),
        max_running: MaxRunning::Keep,
        on_existing: OnExisting::Replace,
    };
    Command::Change(open, Memory::default())
}

/// The settings that are in force, again.
pub(crate) fn change(interval: Micros) -> Command {
    Command::Change(
        Change::Set { rates: Some(Rates::every(interval)), max_running: MaxRunning::Keep },
        Memory::default(),
    )
}

/// What a shard says, step after step. It echoes what it learned as a real one does.
#[derive(Clone, Debug)]
pub(crate) struct Speaker(Step);

impl Speaker {
    /// A shard that has not spoken. It asks for a slot when its time has come, not before.
    pub(crate) fn new(id: &str) -> Self {
        let idle =
            Step::idle(ShardId::new(id).unwrap(), 0, Memory::default(), Micros::from_millis(3_600_000));
        Self(Step { label: Label::new("pid 12345").unwrap(), ..idle })
    }

    /// How early it asks.
    pub(crate) fn with_lead(mut self, lead: Micros) -> Self {
        self.0.lead = lead;
        self
    }

    /// Asks for the slots of tickets it holds, and takes `take` new ones, of which the first `eager` ask at
    /// once.
    pub(crate) fn step(&mut self, ask: impl IntoIterator<Item = Ticket>, take: u32, eager: usize) -> Command {
        self.0.sequence += 1;
        self.0.ask = ask.into_iter().map(|ticket| Ask { ticket, weight: 1 }).collect();
        let request = self.0.sequence;
        self.0.take = (take > 0).then(|| Take { request, count: take, weights: vec![1; eager] });
        Command::Step(self.0.clone())
    }

    /// Remembers what a reply showed.
    pub(crate) fn learn(&mut self, stepped: &Stepped) {
        self.0.memory.learn(stepped.memory);
    }
}
