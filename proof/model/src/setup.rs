//! What is checked: how many shards with which jobs, and what may go wrong how often.

use interval_queue_contract::{Micros, Rate, Rates, judge::Eras};

use crate::Flaw;

/// The step in which time passes.
pub(crate) const TICK: Micros = Micros::from_millis(50);
/// Every state is told as of this instant.
pub(crate) const NOW: Micros = Micros::from_millis(1_000_000);

/// Shards that share a queue, and their circumstances.
#[derive(Clone, Debug)]
pub struct Setup {
    /// For each shard the weights of the jobs that it adds, one by one, whenever it likes.
    pub jobs: Vec<Vec<u32>>,
    /// The time between two slots in the long run, in ticks.
    pub interval: u64,
    /// How many slots may come at once.
    pub burst: u32,
    /// A second rate beside that: its interval in ticks, and its burst.
    pub quota: Option<(u64, u32)>,
    /// How early each shard may ask, in ticks.
    pub leads: Vec<u64>,
    /// The lease of every shard, in ticks.
    pub lease: u64,
    /// How many jobs may run at once.
    pub limit: Option<u32>,
    /// When shards ask.
    pub asking: Asking,
    /// How long a step takes to the state.
    pub requests: Requests,
    /// What may go wrong, and how often.
    pub trouble: Trouble,
    /// How the record may be lost.
    pub losses: Vec<Loss>,
    /// What is wrong with the rules or the shards.
    pub flaw: Option<Flaw>,
}

/// When a shard asks for its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// When it was told to, or later.
    WhenTold,
    /// Whenever it likes: its application nudges it.
    AnyTime,
}

/// How long a step takes from a shard to the state. The answer takes as long as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requests {
    /// No time.
    Quick,
    /// As long as it likes, also when its shard does not wait for it any more.
    Slow,
}

/// How often something may go wrong, or change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Trouble {
    /// A step gets no answer: the request or the reply is lost, or the request arrives later.
    pub timeouts: u8,
    /// A shard dies.
    pub crashes: u8,
    /// The queue is paused; resuming is free.
    pub pauses: u8,
    /// Nobody starts for two intervals.
    pub holds: u8,
    /// A shard withdraws its last waiting job.
    pub cancels: u8,
    /// The record is lost in one of the ways of the setup.
    pub losses: u8,
}

/// A way to lose the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// It is gone. No start may come early.
    Gone,
    /// It is what it was at an earlier time. One start may come early, or as many as the lead spans slots.
    Rewound,
    /// The same, but the server tells that it is another one. No start may come early.
    FailedOver,
}

impl Setup {
    /// Shards with these jobs that ask whenever they like, with an interval of a tick, a lead of one, a lease
    /// of three, and no trouble.
    pub fn new<const N: usize>(jobs: [&[u32]; N]) -> Self {
        Self {
            jobs: jobs.map(<[u32]>::to_vec).to_vec(),
            interval: 1,
            burst: 1,
            quota: None,
            leads: vec![1; N],
            lease: 3,
            limit: None,
            asking: Asking::AnyTime,
            requests: Requests::Quick,
            trouble: Trouble::default(),
            losses: Vec::new(),
            flaw: None,
        }
    }

    /// The same lead for all, in ticks.
    #[must_use]
    pub fn lead(self, ticks: u64) -> Self {
        Self { leads: vec![ticks; self.jobs.len()], ..self }
    }

    /// What may go wrong.
    #[must_use]
    pub fn trouble(self, trouble: Trouble) -> Self {
        Self { trouble, ..self }
    }

    /// Whether shards differ in nothing but their names.
    pub(crate) fn is_symmetric(&self) -> bool {
        let same = |pair: &[Vec<u32>]| pair[0] == pair[1];
        self.jobs.windows(2).all(same) && self.leads.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// Whether what shards remember can ever matter.
    pub(crate) fn may_forget(&self) -> bool {
        self.trouble.losses > 0 || self.flaw.is_some()
    }

    /// Whether a record can come to believe that something was lost.
    pub(crate) fn may_lift(&self) -> bool {
        self.may_forget() || self.trouble.timeouts > 0
    }

    /// How many slots all jobs need.
    pub(crate) fn weight(&self) -> u64 {
        self.jobs.iter().flatten().map(|&weight| u64::from(weight)).sum()
    }

    /// How many slots may be forgotten with the record: as many as the lead spans, and a burst.
    pub(crate) fn slots_ahead(&self) -> u64 {
        self.leads.iter().max().map_or(0, |lead| lead / self.interval) + u64::from(self.largest_burst())
    }

    pub(crate) fn largest_burst(&self) -> u32 {
        self.quota.map_or(self.burst, |(_, burst)| burst.max(self.burst))
    }

    /// The rates of the queue. A quota that has no effect, or is the only one to have one, is a mistake.
    pub(crate) fn rates(&self) -> Rates {
        let rate = |interval, burst| Rate { interval: TICK * interval, burst };
        let quota = self.quota.map(|(interval, burst)| rate(interval, burst));
        let wanted: Vec<_> = [rate(self.interval, self.burst)].into_iter().chain(quota).collect();
        let rates = Rates::of(wanted.iter().copied()).unwrap_or_default();
        assert_eq!(*rates, wanted[..], "each rate has an effect");
        rates
    }

    pub(crate) fn eras(&self) -> Eras {
        let mut eras = Eras::default();
        eras.enter(self.rates());
        eras
    }

    /// The time between two slots in the long run, by the slowest rate.
    pub(crate) fn longest_interval(&self) -> u64 {
        self.quota.map_or(self.interval, |(interval, _)| interval.max(self.interval))
    }

    pub(crate) fn lead_of(&self, shard: usize) -> Micros {
        TICK * self.leads[shard]
    }

    pub(crate) fn interval(&self) -> Micros {
        TICK * self.interval
    }
}
