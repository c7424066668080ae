//! A shard of a load: a real line that also sends steps at odd times.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use interval_queue_contract::{Label, Late, MAX_LABEL, Memory, Micros, ShardId, Step, Stepped, Taken};
use interval_queue_line::{Due, Identity, Line, Next, SpaceBy, Started, Terms, Waiting, WhenStateIsLost};

use crate::random::Random;

const MAX_SEQUENCE: u64 = Micros::MAX.get();
const IDS: [&str; 9] = ["a", "b c", "ü-", "d:0", "-", "o'n \"\\%{}", "日本", "🦀", "e\u{301}"];
const LABELS: [&str; 7] =
    ["", "host:1", "two words  and more", "日本 🦀", "-", "it's; \"\\n\" %s $1 ?", "null"];

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) line: Line<()>,
    lead: Micros,
    /// The shard's clock, which never goes back.
    at: Instant,
}

/// All shards' clocks show the store's time, until it steps back.
fn instant(now: Micros) -> Instant {
    static EPOCH: LazyLock<Instant> = LazyLock::new(|| {
        #[allow(clippy::disallowed_methods, reason = "any instant does, only differences count")]
        Instant::now()
    });
    *EPOCH + now.to_duration()
}

impl Member {
    /// The `n`th shard of a load, below [`Member::MAX_MEMBERS`].
    #[allow(clippy::unwrap_used, reason = "the names above are names")]
    pub(crate) fn new(n: usize, random: &mut Random) -> Self {
        let longest = "x".repeat(MAX_LABEL);
        let label: &str = if random.happens(0.1) { &longest } else { random.pick(&LABELS) };
        let identity = Identity {
            shard: ShardId::new(IDS[n]).unwrap(),
            label: Label::new(label).unwrap(),
            lease: Micros::from_millis(random.pick(&[100, 101, 5_000, 60_000])),
            linger: Duration::ZERO,
            late: if random.happens(0.2) { Late::Requeue } else { Late::NextSlot },
            space_by: SpaceBy::Slots,
            when_lost: WhenStateIsLost::Wait,
        };
        let mut line = Line::new(identity, instant(Micros::ZERO));
        line.connection.sequence = random.pick(&[0, 0, 0, MAX_SEQUENCE - 30]);
        Self {
            line,
            lead: Micros::new(random.pick(&[0, 1, 2_001, 40_000, 1_000_000])),
            at: instant(Micros::ZERO),
        }
    }

    /// Maximum number of shards.
    pub(crate) const MAX_MEMBERS: usize = IDS.len();

    pub(crate) fn memory(&mut self) -> &mut Memory {
        &mut self.line.connection.memory
    }

    /// The shard's next `Step`, with `memory` as its memory.
    pub(crate) fn step(&mut self, memory: Memory, now: Micros, random: &mut Random) -> Step {
        let at = self.at.max(instant(now));
        self.at = at;
        let line = &mut self.line;
        let mut running: Vec<_> = line.running.keys().copied().collect();
        running.sort_unstable();
        for id in running.into_iter().filter(|_| random.happens(0.5)) {
            line.finish(id);
        }
        while let Some(Due::Start(starting)) = line.next_due(at) {
            let weight = starting.job.weight;
            line.started(Started { id: starting.id, at, weight, abort: None });
        }
        if random.happens(0.1) {
            (0..=line.backlog.last_id).rev().find_map(|id| line.withdraw(id));
        }
        if line.backlog.len() < 6 && random.happens(0.5) {
            (0..random.within(1..=4)).for_each(|_| add(line, at, random));
        }
        line.connection.request_now(at);
        loop {
            match line.next(at, self.lead, false) {
                Next::Send(step) => {
                    let sequence = step.sequence.min(MAX_SEQUENCE);
                    return Step { sequence, memory, ..*step };
                }
                Next::Read | Next::Sleep(_) | Next::Stop => add(line, at, random),
            }
        }
    }

    pub(crate) fn learn(&mut self, step: &Step, stepped: &Stepped) {
        // More tickets would only slow the sequence down.
        let taken = stepped.taken.map(|taken| Taken { count: taken.count.min(6), ..taken });
        self.line.absorb(step, Stepped { taken, ..stepped.clone() }, self.at, self.at);
    }
}

fn add(line: &mut Line<()>, at: Instant, random: &mut Random) {
    let weight = if random.happens(0.85) { 1 } else { random.within(1..=4) as u32 };
    let terms = Terms { weight, priority: 0, deadline: None, group: None };
    line.arrive(Waiting::new(terms, ()), (), at, None);
}
