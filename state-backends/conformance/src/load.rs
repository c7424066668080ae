//! Random commands, valid and invalid, with changes of every kind and numbers near the maximum.

use interval_queue_contract::{
    Ask, Change, Command, Deletion, Late, MAX_INTERVAL, MAX_LEAD, MAX_LEASE, MAX_TAKE, MAX_WEIGHT, MIN_LEASE,
    MaxRunning, Memory, Meters, Micros, OnExisting, Rate, Rates, Record, Reply, Step, Take, Ticket,
};

use crate::{member::Member, random::Random};

const MAX_MICROS: u64 = Micros::MAX.get();
/// Doubles cannot distinguish higher revisions. No real queue reaches them.
const LAST_REVISION: u64 = MAX_MICROS - 1_000;

/// A few shards of one queue that send random commands. Most are valid; some have impossible
/// memories, tickets or numbers; some exceed a bound.
///
/// To test another implementation of [`rules::apply`](interval_queue_contract::rules::apply), send
/// each command to both and compare, as
/// [`checks::commands_follow_the_rules`](crate::checks::commands_follow_the_rules) does in real
/// time.
///
/// ```
/// use interval_queue_conformance::{Load, Tally};
/// use interval_queue_contract::{Micros, Reading, rules};
///
/// let (mut load, mut tally) = (Load::new(7), Tally::default());
/// let mut record = None;
/// for second in 1..=40 {
///     let reading = Reading::of_clock(Micros::from_millis(1000 * second));
///     let sent = load.next_command(record.as_ref(), reading.now);
///     let reply = rules::apply(&mut record, &reading, sent.command());
///     if let Ok(reply) = &reply {
///         load.observe_reply(&sent, reply);
///     }
///     tally.count(reply.as_ref().map_err(|error| error.kind()));
/// }
/// println!("{tally:?}");
/// ```
#[derive(Clone, Debug)]
pub struct Load {
    random: Random,
    interval: u64,
    members: Vec<Member>,
}

/// A command of a [`Load`] and the shard that sent it.
#[derive(Clone, Debug)]
pub struct SentCommand {
    sender: usize,
    command: Command,
}

impl SentCommand {
    /// The command, never [`Command::Read`].
    pub fn command(&self) -> &Command {
        &self.command
    }
}

impl Load {
    /// One to five new shards. The same seed and replies give the same commands.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::seeded(seed);
        let interval = random.pick(&[1, 999, 10_000, 250_000, 3_000_000, MAX_INTERVAL.get()]);
        let first = random.within(0..=Member::MAX_MEMBERS as u64 - 1) as usize;
        let count = random.within(1..=5) as usize;
        let members =
            (first..first + count).map(|n| Member::new(n % Member::MAX_MEMBERS, &mut random)).collect();
        Self { random, interval, members }
    }

    /// Sets the interval that the shards open the queue with. Default: 1 µs to a year, by the seed.
    #[must_use]
    pub fn with_interval(self, interval: Micros) -> Self {
        Self { interval: interval.get(), ..self }
    }

    /// The interval that the shards usually open the queue with.
    pub fn interval(&self) -> Micros {
        Micros::new(self.interval)
    }

    /// The next command for a queue with this record (`None`: no queue) at about `now`.
    #[must_use]
    pub fn next_command(&mut self, record: Option<&Record>, now: Micros) -> SentCommand {
        let sender = self.random.within(0..=self.members.len() as u64 - 1) as usize;
        let command = match self.random.within(0..=99) {
            _ if record.is_none() && self.random.happens(0.5) => self.open(sender, now),
            // A pause prevents most decisions: end it soon.
            0..30 if record.is_some_and(|record| record.paused) => {
                Command::Change(Change::Resume, self.memory(sender, now))
            }
            0..4 => self.open(sender, now),
            4 => Command::Change(Change::Delete(self.deletion()), self.memory(sender, now)),
            5..16 => self.change(sender, now),
            16..30 => Command::Step(self.dishonest_step(sender, record, now)),
            _ => Command::Step(self.step(sender, now)),
        };
        SentCommand { sender, command }
    }

    /// Processes the reply to a command. One in twenty replies is lost.
    pub fn observe_reply(&mut self, sent: &SentCommand, reply: &Reply) {
        if self.random.happens(0.05) {
            return;
        }
        let member = &mut self.members[sent.sender];
        match (&sent.command, reply) {
            (Command::Step(step), Reply::Stepped(stepped)) => member.learn(step, stepped),
            (_, Reply::Changed(changed)) => member.memory().learn(changed.memory),
            _ => {}
        }
    }

    fn settings(&mut self) -> (Option<Rates>, MaxRunning) {
        let random = &mut self.random;
        let interval = match random.within(0..=31) {
            0..4 => None,
            4..8 => Some(random.within(1..=MAX_INTERVAL.get())),
            8..12 => Some(self.interval * 2),
            // Below the minimum.
            12 => Some(0),
            _ => Some(self.interval),
        };
        let limit = match random.within(0..=31) {
            0..8 => MaxRunning::Unlimited,
            8..12 => MaxRunning::AtMost(random.within(0..=u64::from(u32::MAX)) as u32),
            12..19 => MaxRunning::AtMost(random.within(1..=5) as u32),
            19 => MaxRunning::AtMost(0),
            _ => MaxRunning::Keep,
        };
        (interval.map(|interval| self.rates(Micros::new(interval))), limit)
    }

    /// Rates that begin with `interval`; only `interval` if it is too long for bursts.
    fn rates(&mut self, interval: Micros) -> Rates {
        let few = self.random.within(2..=5) as u32;
        let rate = |times: u64, burst| Rate { interval: interval * times, burst };
        let rates = match self.random.within(0..=9) {
            0..5 => vec![rate(1, 1)],
            5..7 => vec![rate(1, few)],
            7..9 => vec![rate(1, 1), rate(3, few)],
            _ => vec![rate(1, few), rate(2, few + 1), rate(7, 3 * few)],
        };
        Rates::of(rates).unwrap_or_else(|_| Rates::every(interval))
    }

    fn open(&mut self, sender: usize, now: Micros) -> Command {
        let (rates, max_running) = self.settings();
        let policies = [OnExisting::Replace, OnExisting::Keep, OnExisting::Fail, OnExisting::Reset];
        let on_existing = self.random.pick(&policies);
        let change = Change::Open { rates, max_running, on_existing };
        Command::Change(change, self.memory(sender, now))
    }

    fn change(&mut self, sender: usize, now: Micros) -> Command {
        let (rates, max_running) = self.settings();
        let change = match self.random.within(0..=15) {
            0..3 => Change::Pause,
            3..9 => Change::Resume,
            // The last value exceeds the bound.
            9 => Change::Hold(Micros::new(self.random.within(0..=MAX_INTERVAL.get() + 1))),
            10..13 => Change::Hold(Micros::new(self.random.within(0..=3 * self.interval))),
            13..15 => Change::Set { rates, max_running },
            _ => Change::Reset,
        };
        Command::Change(change, self.memory(sender, now))
    }

    fn deletion(&mut self) -> Deletion {
        let idle = Micros::new(self.random.within(0..=2 * self.interval));
        self.random.pick(&[
            Deletion::Unused,
            Deletion::Idle(Micros::ZERO),
            Deletion::Idle(idle),
            Deletion::Forced,
        ])
    }

    /// The shard's memory, an empty one, or a random one.
    fn memory(&mut self, sender: usize, now: Micros) -> Memory {
        let mine = *self.members[sender].memory();
        match self.random.within(0..=19) {
            0..3 => Memory::default(),
            3 => self.any_memory(mine, now),
            _ => mine,
        }
    }

    fn any_memory(&mut self, near: Memory, now: Micros) -> Memory {
        let at = self.number(now.get());
        let ticket = self.number(near.ticket.get());
        // A `current` above `ticket` + 1 would be rejected.
        let current = self.number(near.current.get()).min(ticket.saturating_add(1)).min(MAX_MICROS);
        Memory {
            at: Micros::new(at),
            sequence: self.number(near.sequence),
            ticket: Ticket::new(ticket),
            current: Ticket::new(current),
            meters: self.any_meters(near.meters),
            revision: self.number(near.revision).min(LAST_REVISION),
            max_running: self.random.happens(0.5).then(|| self.random.within(0..=8) as u32),
            paused: self.random.happens(0.2),
            held_until: Micros::new(self.number(now.get())),
            longest_lead: Micros::new(self.random.within(0..=MAX_LEAD.get())),
            shards: self.random.within(0..=8) as u32,
        }
    }

    /// Sometimes meters of other rates, possibly none.
    fn any_meters(&mut self, near: Meters) -> Meters {
        let interval = Micros::new(self.number(self.interval));
        let mut meters = if self.random.happens(0.3) { Meters::new(&self.rates(interval)) } else { near };
        meters.iter_mut().for_each(|meter| meter.tat = Micros::new(self.number(meter.tat.get())));
        meters
    }

    /// Mostly near `near`, sometimes at an end of the range or anywhere.
    fn number(&mut self, near: u64) -> u64 {
        let random = &mut self.random;
        match random.within(0..=23) {
            0 => MAX_MICROS - random.within(0..=2),
            1 => random.within(0..=2),
            2 => random.within(0..=MAX_MICROS),
            3..14 => near.saturating_sub(random.within(0..=4)),
            _ => near.saturating_add(random.within(0..=4)).min(MAX_MICROS),
        }
    }

    fn step(&mut self, sender: usize, now: Micros) -> Step {
        let memory = self.memory(sender, now);
        self.members[sender].step(memory, now, &mut self.random)
    }

    /// A `Step` that breaks the contract, mostly within the bounds.
    fn dishonest_step(&mut self, sender: usize, record: Option<&Record>, now: Micros) -> Step {
        let mut step = self.step(sender, now);
        let last = record.map_or(0, |record| record.ticket.get());
        for _ in 0..self.random.within(1..=3) {
            match self.random.within(0..=12) {
                0 => step.sequence = self.number(step.sequence),
                1 => step.memory = self.any_memory(step.memory, now),
                2 => step.lease = Micros::new(self.random.within(MIN_LEASE.get()..=MAX_LEASE.get())),
                3 => step.lead = Micros::new(self.random.within(0..=MAX_LEAD.get())),
                4 => step.running = self.random.pick(&[7, u32::MAX - 1, u32::MAX]),
                5 => step.given_up = Some(Ticket::new(self.number(last))),
                6 => step.then = Some(Ticket::new(self.number(last))),
                7 => {
                    let mut tickets: Vec<u64> = (0..3).map(|_| self.number(last)).collect();
                    tickets.sort_unstable();
                    tickets.dedup();
                    let ask = tickets.into_iter().map(|ticket| Ask {
                        ticket: Ticket::new(ticket),
                        weight: self.random.within(1..=2) as u32,
                    });
                    step.ask = ask.collect();
                    step.then = None;
                }
                8 => {
                    if let Some(ask) = step.ask.first_mut() {
                        ask.weight = self.random.within(1..=u64::from(MAX_WEIGHT)) as u32;
                    }
                }
                9 => {
                    let count = self.random.within(1..=u64::from(MAX_TAKE)) as u32;
                    step.take = Some(Take { request: self.number(2), count, weights: Vec::new() });
                }
                10 => step.late = Late::Requeue,
                11 => step.ask.clear(),
                _ => self.break_a_bound(&mut step),
            }
        }
        step
    }

    fn break_a_bound(&mut self, step: &mut Step) {
        match self.random.within(0..=4) {
            0 => step.lease = MIN_LEASE - Micros::new(1),
            1 => step.lease = MAX_LEASE + Micros::new(1),
            2 => step.lead = MAX_LEAD + Micros::new(1),
            3 => step.ask = vec![Ask { ticket: Ticket::new(1), weight: MAX_WEIGHT + 1 }],
            _ => step.take = Some(Take { request: 1, count: MAX_TAKE + 1, weights: Vec::new() }),
        }
    }
}
