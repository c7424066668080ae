//! A record on a clock that stands still, and shards that keep their sequence and memory.

pub(crate) use crate::line::{Line, line, line_of, three};
use interval_queue_contract::{
    Ask, Change, Changed, Command, Late, MaxRunning, Memory, Micros, OnExisting, Rates, Reading, Record,
    Reply, ShardId, StateError, Step, Stepped, Take, Ticket, WaitReason, rules,
};

/// The interval of the queue in most tests.
pub(crate) const INTERVAL: Micros = ms(100);
/// When the tests begin, on the state's clock.
pub(crate) const T0: Micros = ms(1_000_000_000);

pub(crate) const fn ms(millis: u64) -> Micros {
    Micros::from_millis(millis)
}

pub(crate) const fn t(ticket: u64) -> Ticket {
    Ticket::new(ticket)
}

/// The earliest next slot, but for a hold.
pub(crate) fn tat(record: &Record) -> Micros {
    record.meters.first().tat
}

/// What is stored, and the clock.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) stored: Option<Record>,
    pub(crate) reading: Reading,
}

impl State {
    /// No queue yet, at `T0`.
    pub(crate) fn empty() -> Self {
        Self { stored: None, reading: Reading::of_clock(T0) }
    }

    /// A new queue with the interval of the tests, at `T0`.
    pub(crate) fn opened() -> Self {
        let mut state = Self::empty();
        state.change(open(Some(INTERVAL), MaxRunning::Keep, OnExisting::Fail)).unwrap();
        state
    }

    /// A queue on which ticket 1 was started at `T0`, which is now: ticket n has its slot n − 1 intervals
    /// later.
    pub(crate) fn begun() -> Self {
        let mut state = Self::opened();
        Shard::new("opener").start(&mut state, 1, Micros::ZERO);
        assert_eq!((state.record().current, tat(state.record())), (t(1), T0 + INTERVAL));
        state
    }

    pub(crate) fn record(&self) -> &Record {
        self.stored.as_ref().unwrap()
    }

    pub(crate) fn now(&self) -> Micros {
        self.reading.now
    }

    /// Sets the clock to so many milliseconds after `T0`.
    pub(crate) fn at(&mut self, millis: u64) {
        self.reading.now = T0 + ms(millis);
    }

    pub(crate) fn apply(&mut self, command: &Command) -> Result<Reply, StateError> {
        rules::apply(&mut self.stored, &self.reading, command)
    }

    pub(crate) fn change(&mut self, change: Change) -> Result<Changed, StateError> {
        self.change_with(change, Memory::default())
    }

    pub(crate) fn change_with(&mut self, change: Change, memory: Memory) -> Result<Changed, StateError> {
        self.apply(&Command::Change(change, memory))?.changed()
    }

    pub(crate) fn limit(&mut self, max_running: u32) {
        let max_running = MaxRunning::AtMost(max_running);
        self.change(Change::Set { rates: None, max_running }).unwrap();
    }
}

pub(crate) fn open(interval: Option<Micros>, max_running: MaxRunning, on_existing: OnExisting) -> Change {
    Change::Open { rates: interval.map(Rates::every), max_running, on_existing }
}

/// A shard with one way to step: everything it has it says.
#[derive(Clone, Debug)]
pub(crate) struct Shard {
    pub(crate) id: ShardId,
    pub(crate) sequence: u64,
    pub(crate) request: u64,
    pub(crate) memory: Memory,
    pub(crate) lease: Micros,
    pub(crate) late: Late,
}

impl Shard {
    /// A shard with a lease of a minute.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            id: ShardId::new(name).unwrap(),
            sequence: 0,
            request: 0,
            memory: Memory::default(),
            lease: ms(60_000),
            late: Late::NextSlot,
        }
    }

    pub(crate) fn leased(self, lease: Micros) -> Self {
        Self { lease, ..self }
    }

    /// Its next step: nothing taken, asked or left.
    pub(crate) fn step(&mut self) -> Step {
        self.sequence += 1;
        Step { late: self.late, ..Step::idle(self.id.clone(), self.sequence, self.memory, self.lease) }
    }

    pub(crate) fn send(&mut self, state: &mut State, step: Step) -> Result<Stepped, StateError> {
        let stepped = state.apply(&Command::Step(step))?.stepped()?;
        self.memory.learn(stepped.memory);
        Ok(stepped)
    }

    /// Makes its next step, as `say` has it. It must not be refused.
    pub(crate) fn say(&mut self, state: &mut State, say: impl FnOnce(Step) -> Step) -> Stepped {
        let step = say(self.step());
        self.send(state, step).unwrap()
    }

    /// The same, with so many tickets that do not ask yet.
    pub(crate) fn with(mut self, state: &mut State, count: u32) -> Self {
        self.take(state, count);
        self
    }

    /// Takes tickets that do not ask yet.
    pub(crate) fn take(&mut self, state: &mut State, count: u32) -> Stepped {
        self.take_behind(state, count, None)
    }

    /// The same, with this one outstanding.
    pub(crate) fn take_behind(&mut self, state: &mut State, count: u32, then: Option<Ticket>) -> Stepped {
        self.request += 1;
        let take = Some(Take { request: self.request, count, weights: Vec::new() });
        self.say(state, |step| Step { take, then, ..step })
    }

    /// Takes tickets that ask at once; all must be granted. Returns their slots.
    pub(crate) fn start(&mut self, state: &mut State, count: u32, lead: Micros) -> Vec<Micros> {
        self.request += 1;
        let take = Some(Take { request: self.request, count, weights: vec![1; count as usize] });
        let stepped = self.say(state, |step| Step { take, lead, ..step });
        assert_eq!(stepped.grants.len(), count as usize, "{stepped:?}");
        slots(&stepped)
    }

    /// Asks for these tickets, of weight 1, which are all it has.
    pub(crate) fn ask(&mut self, state: &mut State, tickets: &[u64], lead: Micros) -> Stepped {
        let ask = tickets.iter().map(|&ticket| ask(ticket, 1)).collect();
        self.say(state, |step| Step { ask, lead, ..step })
    }

    /// Asks for one ticket as early as can be, which must be granted. Returns its slot, counted from `T0`.
    pub(crate) fn slot(&mut self, state: &mut State, ticket: u64, weight: u32) -> Micros {
        let lead = interval_queue_contract::MAX_LEAD;
        let ask = vec![ask(ticket, weight)];
        let stepped = self.say(state, |step| Step { ask, lead, ..step });
        assert_eq!(stepped.grants.len(), 1, "{stepped:?}");
        slots(&stepped)[0] - T0
    }
}

pub(crate) fn ask(ticket: u64, weight: u32) -> Ask {
    Ask { ticket: t(ticket), weight }
}

/// The slots that a reply grants, on the state's clock.
pub(crate) fn slots(stepped: &Stepped) -> Vec<Micros> {
    stepped.grants.iter().map(|grant| grant.slot).collect()
}

/// What the reply says to wait for, and when to ask again.
pub(crate) fn wait(stepped: &Stepped) -> (WaitReason, Option<Micros>) {
    let wait = stepped.wait.clone().unwrap();
    (wait.reason, wait.ask_in)
}

pub(crate) fn behind(shard: &str, ticket: u64) -> WaitReason {
    WaitReason::Behind { shard: ShardId::new(shard).unwrap(), ticket: t(ticket) }
}

/// A shard that runs so many jobs and waits for nothing.
pub(crate) fn busy(state: &mut State, lease: Micros, running: u32) -> Shard {
    let mut busy = Shard::new("busy").leased(lease);
    busy.say(state, |step| Step { running, ..step });
    busy
}
