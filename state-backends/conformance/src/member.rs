//! A shard of a crowd: as honest as a shard is, though it forgets replies.

use interval_queue_contract::{
    Ask, Label, Late, MAX_LABEL, Memory, Micros, ShardId, Step, Stepped, Take, Ticket, WaitReason,
};

use crate::random::Random;

const MOST: u64 = Micros::MAX.get();
const IDS: [&str; 9] = ["a", "b c", "ü-", "d:0", "-", "o'n \"\\%{}", "日本", "🦀", "e\u{301}"];
const LABELS: [&str; 7] =
    ["", "host:1", "two words  and more", "日本 🦀", "-", "it's; \"\\n\" %s $1 ?", "null"];

/// What a shard knows of itself.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) id: ShardId,
    label: Label,
    pub(crate) memory: Memory,
    sequence: u64,
    request: u64,
    waiting: Vec<Ticket>,
    running: u32,
    lease: Micros,
    lead: Micros,
    late: Late,
    unacknowledged: Option<Take>,
}

impl Member {
    /// The `n`th of a crowd. There are no more than [`Member::MOST`].
    #[allow(clippy::unwrap_used, reason = "the names above are names")]
    pub(crate) fn new(n: usize, random: &mut Random) -> Self {
        let longest = "x".repeat(MAX_LABEL);
        let label: &str = if random.happens(0.1) { &longest } else { random.pick(&LABELS) };
        Self {
            id: ShardId::new(IDS[n]).unwrap(),
            label: Label::new(label).unwrap(),
            memory: Memory::default(),
            sequence: random.pick(&[0, 0, 0, MOST - 30]),
            request: 0,
            waiting: Vec::new(),
            running: 0,
            lease: Micros::from_millis(random.pick(&[100, 101, 5_000, 60_000])),
            lead: Micros::new(random.pick(&[0, 1, 2_001, 40_000, 1_000_000])),
            late: if random.happens(0.2) { Late::Requeue } else { Late::NextSlot },
            unacknowledged: None,
        }
    }

    /// How many there can be.
    pub(crate) const MOST: usize = IDS.len();

    /// Its next step, which says that it remembers `memory`.
    pub(crate) fn step(&mut self, memory: Memory, random: &mut Random) -> Step {
        self.sequence = (self.sequence + 1).min(MOST);
        self.running -= random.within(0..=u64::from(self.running)) as u32;
        let mut given_up = None;
        if !self.waiting.is_empty() && random.happens(0.1) {
            given_up = self.waiting.pop();
        }
        let asked = random.within(0..=self.waiting.len().min(4) as u64) as usize;
        let ask: Vec<Ask> =
            self.waiting[..asked].iter().map(|&ticket| Ask { ticket, weight: weight(random) }).collect();
        let then = self.waiting.get(asked).copied();
        let mut take = self.unacknowledged.take();
        if take.is_none() && random.happens(0.5) {
            self.request += 1;
            let count = random.within(1..=4) as u32;
            take = Some(Take { request: self.request, count, weights: Vec::new() });
        }
        if let Some(take) = &mut take {
            let most = if then.is_some() { 0 } else { take.count };
            take.weights = (0..random.within(0..=u64::from(most))).map(|_| weight(random)).collect();
        }
        self.unacknowledged.clone_from(&take);
        Step {
            shard: self.id.clone(),
            label: self.label.clone(),
            sequence: self.sequence,
            memory,
            lease: self.lease,
            lead: self.lead,
            take,
            ask,
            then,
            late: self.late,
            running: self.running,
            given_up,
        }
    }

    /// Takes in the reply to its step.
    pub(crate) fn learn(&mut self, step: &Step, stepped: &Stepped) {
        self.memory.learn(stepped.memory);
        self.unacknowledged = None;
        if let Some(taken) = stepped.taken {
            // More would only make the sequence slow.
            let count = u64::from(taken.count).min(6);
            self.waiting.extend((0..count).map(|n| taken.first.after(n)));
        }
        for grant in &stepped.grants {
            self.running = self.running.saturating_add(1);
            self.waiting.retain(|ticket| *ticket != grant.ticket);
        }
        let missed = matches!(&stepped.wait, Some(wait) if wait.reason == WaitReason::Missed);
        if step.late == Late::Requeue && missed {
            self.waiting.retain(|ticket| *ticket > stepped.memory.current);
        }
        self.waiting.sort_unstable();
        self.waiting.dedup();
    }
}

fn weight(random: &mut Random) -> u32 {
    if random.happens(0.85) { 1 } else { random.within(1..=4) as u32 }
}
