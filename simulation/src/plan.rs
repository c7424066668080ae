//! A plan: all that will happen in one simulation, made from a seed. Any part of it can be run
//! again.

use std::{fmt, time::Duration};

use fastrand::Rng;
use interval_queue::{Late, RateLimit, SpaceBy};
use interval_queue_contract::{Micros, Rate, Rates};

use crate::{
    fault::Fault,
    wire::{Cut, Mishap},
};

/// What plans are to be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How many shards there are at any time.
    pub shards: usize,
    /// How many jobs they get.
    pub jobs: usize,
    /// What can go wrong.
    pub faults: Vec<Fault>,
    /// How many faults there are for ten jobs.
    pub faults_per_ten_jobs: usize,
    /// The rates of the queue; none: an interval of a few between 5 and 250 ms, for some seeds with a burst, a
    /// quota, or both.
    pub rates: Option<Rates>,
    /// The lease of the shards; none: one of a few between 0.5 and 5 s, at least three of the shortest intervals.
    pub lease: Option<Duration>,
}

impl Shape {
    /// A few shards, some jobs, all faults.
    pub fn small() -> Self {
        Self {
            shards: 3,
            jobs: 30,
            faults: Fault::ALL.to_vec(),
            faults_per_ten_jobs: 5,
            rates: None,
            lease: None,
        }
    }
}

/// All that happens in one simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// It was made from this.
    pub seed: u64,
    /// The rates of the queue.
    pub rates: Rates,
    /// The lease of each shard.
    pub lease: Duration,
    /// The running limit.
    pub max_running: Option<u32>,
    /// The shards.
    pub shards: Vec<ShardPlan>,
    /// What happens, in the order of time.
    pub events: Vec<Timed>,
}

/// What is lasting about a shard.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardPlan {
    /// What becomes of its late tickets.
    pub late: Late,
    /// What keeps its distance.
    pub space_by: SpaceBy,
    /// How much faster than true time its clock runs, in parts per million.
    pub drift: i32,
    /// The longest ordinary delay of its requests and of the replies to them.
    pub delay: (Duration, Duration),
}

/// Something that happens at a given time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// Since the beginning, in true time.
    pub at: Duration,
    /// What.
    pub event: Event,
    /// Which fault it is; none for a job.
    pub fault: Option<Fault>,
}

/// Something that happens. Numbers in `shard` are places in [`Plan::shards`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the variants say it")]
pub enum Event {
    /// A shard gets a job of this weight that runs for so long.
    Add { shard: usize, weight: u32, runs: Duration },
    /// A shard cancels one of its waiting jobs.
    Cancel { shard: usize },
    /// Something befalls the next command of a shard.
    Befall { shard: usize, mishap: Mishap },
    /// A shard is killed; another takes its place after some time.
    Kill { shard: usize, replaced_after: Option<Duration> },
    /// A shard is stopped for so long.
    Stop { shard: usize, time: Duration },
    /// A shard is stopped for so long in the middle of its next step.
    StopInStep { shard: usize, time: Duration },
    /// A shard is cut off.
    Partition { shard: usize, time: Duration, cut: Cut },
    /// The store cannot be reached.
    Outage { time: Duration, cut: Cut },
    /// The store is restarted with all it knew.
    Restart,
    /// The store is restarted with nothing.
    Forget,
    /// A replica takes over that lacks so many writes.
    FailOver { writes: usize },
    /// A copy is put back that is so many writes old.
    OldCopy { writes: usize },
    /// The store's clock is stepped, by microseconds.
    ClockStep { micros: i64 },
    /// A shard pauses the queue.
    Pause { shard: usize },
    /// A shard resumes the queue, and all others are nudged.
    Resume { shard: usize },
    /// A shard holds the queue.
    Hold { shard: usize, time: Duration },
    /// A shard sets other rates.
    SetRates { shard: usize, rates: Rates },
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Plan {
    /// The plan of that shape that a seed gives.
    pub fn make(seed: u64, shape: &Shape) -> Self {
        let mut random = Rng::with_seed(seed);
        let has = |fault| shape.faults.contains(&fault);
        let interval = pick(&mut random, &[ms(5), ms(10), ms(20), ms(50), ms(100), ms(250)]);
        let mut meters = Meters::of(seed);
        let rates = shape.rates.unwrap_or_else(|| meters.with(interval));
        let interval = rates.first().map_or(interval, |rate| rate.interval.to_duration());
        let longest = pick(&mut random, &[ms(1), ms(2), ms(5), ms(20), ms(60)]);
        let shards = (0..shape.shards.max(1)).map(|_| ShardPlan {
            space_by: if shape.faults.is_empty() { SpaceBy::Slots } else { meters.space_by() },
            late: if random.u8(..) < 50 && !shape.faults.is_empty() { Late::Requeue } else { Late::NextSlot },
            drift: if has(Fault::Drift) { random.i32(-450..=450) } else { 0 },
            delay: if has(Fault::Delay) {
                (some(&mut random, longest), some(&mut random, longest))
            } else {
                (ms(1), ms(1))
            },
        });
        let shards: Vec<_> = shards.collect();
        let lease = pick(&mut random, &[ms(500), ms(1_000), ms(2_000), ms(5_000)]).max(interval * 3);
        let lease = shape.lease.unwrap_or(lease);
        let max_running = (random.u8(..) < 50 && !shape.faults.is_empty()).then(|| random.u32(1..5));
        let mut plan = Self { seed, rates, lease, max_running, shards, events: Vec::new() };
        // From half the load that fits to twice as much.
        let length = interval * u32::try_from(shape.jobs).unwrap_or(u32::MAX) * random.u32(50..200) / 100;
        let heavy = random.u8(..) < 60 && !shape.faults.is_empty();
        for _ in 0..shape.jobs {
            let shard = random.usize(..plan.shards.len());
            let weight = if heavy && random.u8(..) < 30 { random.u32(2..6) } else { 1 };
            let runs = few(&mut random, ms(300));
            plan.happen(&mut random, length, None, Event::Add { shard, weight, runs });
        }
        if !shape.faults.is_empty() {
            for _ in 0..shape.jobs * shape.faults_per_ten_jobs / 10 {
                let fault = shape.faults[random.usize(..shape.faults.len())];
                plan.add_fault(&mut random, &mut meters, length, fault);
            }
        }
        plan.events.sort_by_key(|timed| timed.at);
        plan
    }

    fn happen(&mut self, random: &mut Rng, length: Duration, fault: Option<Fault>, event: Event) {
        self.events.push(Timed { at: some(random, length), event, fault });
    }

    fn add_fault(&mut self, random: &mut Rng, meters: &mut Meters, length: Duration, fault: Fault) {
        let shard = random.usize(..self.shards.len());
        let event = match (trouble(random, fault, shard), fault) {
            (Some(event), _) => event,
            (None, Fault::Control) => match random.u8(..10) {
                0 | 1 => Event::Pause { shard },
                2..6 => Event::Resume { shard },
                6 | 7 => Event::Hold { shard, time: few(random, ms(2_000)) },
                _ => {
                    let interval = pick(random, &[ms(5), ms(20), ms(100), ms(200)]);
                    Event::SetRates { shard, rates: meters.with(interval) }
                }
            },
            (None, Fault::Cancel) => Event::Cancel { shard },
            // Lasts from the beginning to the end.
            (None, _) => return,
        };
        self.happen(random, length, Some(fault), event);
    }

    /// How often each fault happens.
    pub fn faults(&self) -> impl Iterator<Item = (Fault, u64)> + use<'_> {
        Fault::ALL.into_iter().filter_map(|fault| {
            let count = self.events.iter().filter(|timed| timed.fault == Some(fault)).count();
            let drifting = self.shards.iter().filter(|shard| shard.drift != 0).count();
            let count = if fault == Fault::Drift { drifting } else { count };
            (count > 0).then_some((fault, count as u64))
        })
    }

    /// Whether nothing goes wrong: shards are punctual then, and have to start in order and waste no slot.
    pub fn is_faultless(&self) -> bool {
        let punctual = |shard: &ShardPlan| {
            shard.drift == 0 && shard.delay.0 + shard.delay.1 <= ms(2) && shard.space_by == SpaceBy::Slots
        };
        self.shards.iter().all(punctual) && self.events.iter().all(|timed| timed.fault.is_none())
    }

    pub(crate) fn longest_interval(&self) -> Duration {
        let set = self.events.iter().filter_map(|timed| match &timed.event {
            Event::SetRates { rates, .. } => Some(rates),
            _ => None,
        });
        let longest = set.chain([&self.rates]).map(Rates::longest).max();
        longest.unwrap_or_default().to_duration()
    }

    /// How many jobs are added.
    pub fn jobs(&self) -> usize {
        self.events.iter().filter(|timed| matches!(timed.event, Event::Add { .. })).count()
    }
}

/// Makes rates of intervals, and strict shards. It draws from its own random numbers, so the rest
/// of a plan equals that of a queue without bursts.
struct Meters {
    random: Rng,
    has_bursts: bool,
    is_strict: bool,
}

impl Meters {
    fn of(seed: u64) -> Self {
        let mut random = Rng::with_seed(!seed);
        Self { has_bursts: random.u8(..) < 96, is_strict: random.u8(..) < 64, random }
    }

    /// In some plans with a burst, a quota, or both.
    fn with(&mut self, interval: Duration) -> Rates {
        let steady = Rates::every(Micros::from_duration(interval));
        if !self.has_bursts {
            return steady;
        }
        let random = &mut self.random;
        let mut rate = |interval: Duration, bursts: &[u32]| Rate {
            interval: Micros::from_duration(interval),
            burst: pick(random, bursts),
        };
        let first = rate(interval, &[1, 1, 2, 3, 8]);
        let quota = rate(interval * 3, &[1, 4, 10, 20]);
        let with_quota = random.bool();
        let wanted = [first, quota].into_iter().take(1 + usize::from(with_quota));
        Rates::of(wanted).unwrap_or(steady)
    }

    fn space_by(&mut self) -> SpaceBy {
        if self.is_strict && self.random.bool() { SpaceBy::Starts } else { SpaceBy::Slots }
    }
}

pub(crate) fn pace(rates: &Rates) -> RateLimit {
    rates.iter().fold(RateLimit::default(), |pace, rate| {
        pace.and(1).per(rate.interval.to_duration()).burst(rate.burst)
    })
}

/// `None`: another kind of fault.
pub(crate) fn trouble(random: &mut Rng, fault: Fault, shard: usize) -> Option<Event> {
    let cut = if random.bool() { Cut::Refused } else { Cut::Silent };
    let befall = |mishap| Event::Befall { shard, mishap };
    Some(match fault {
        Fault::Delay => befall(Mishap::Delay(few(random, ms(1_500)), few(random, ms(1_500)))),
        Fault::LoseRequest => befall(Mishap::LoseRequest),
        Fault::LoseReply => befall(Mishap::LoseReply(cut)),
        Fault::Duplicate => befall(Mishap::Duplicate(few(random, ms(5_000)))),
        Fault::Crash => {
            let replaced_after = (random.u8(..) < 200).then(|| few(random, ms(3_000)));
            Event::Kill { shard, replaced_after }
        }
        Fault::Stop if random.bool() => Event::Stop { shard, time: few(random, ms(9_000)) },
        Fault::Stop => Event::StopInStep { shard, time: few(random, ms(3_000)) },
        Fault::Partition => Event::Partition { shard, time: few(random, ms(8_000)), cut },
        Fault::Outage => Event::Outage { time: few(random, ms(5_000)), cut },
        Fault::Restart => Event::Restart,
        Fault::Forget => Event::Forget,
        Fault::FailOver => Event::FailOver { writes: random.usize(1..20) },
        Fault::OldCopy => Event::OldCopy { writes: random.usize(1..200) },
        Fault::ClockStep => {
            let time = few(random, ms(3_600_000)).as_micros() as i64;
            Event::ClockStep { micros: if random.bool() { time } else { -time } }
        }
        Fault::Control | Fault::Cancel | Fault::Drift => return None,
    })
}

pub(crate) fn pick<T: Clone>(random: &mut Rng, from: &[T]) -> T {
    from[random.usize(..from.len())].clone()
}

pub(crate) fn some(random: &mut Rng, most: Duration) -> Duration {
    Duration::from_micros(random.u64(0..=most.as_micros() as u64))
}

/// A mostly small part.
pub(crate) fn few(random: &mut Rng, most: Duration) -> Duration {
    let most = pick(random, &[most / 100, most / 10, most]);
    some(random, most)
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: {}, lease {:?}, max_running {:?}",
            self.seed, self.rates, self.lease, self.max_running
        )?;
        for (number, shard) in self.shards.iter().enumerate() {
            writeln!(f, "  shard {number}: {shard:?}")?;
        }
        for Timed { at, event, .. } in &self.events {
            writeln!(f, "{:>12.3} ms  {event:?}", at.as_secs_f64() * 1000.0)?;
        }
        Ok(())
    }
}
