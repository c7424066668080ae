//! Harm around the commands of a `Load`: time passes, the clock is stepped, the server restarted, the
//! record lost or rewound; also near the end of what a double holds.

use interval_queue_conformance::Load;
use interval_queue_contract::{Command, Micros, Reading, Record, rules};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::{Outcome, outcome};

const MAX_MICROS: u64 = Micros::MAX.get();

/// A command with what came before it and what the Rust rules make of it.
pub(super) struct Event {
    pub(super) before: Accident,
    pub(super) command: Command,
    pub(super) reading: Reading,
    pub(super) reply: Outcome,
    pub(super) record: Outcome,
}

/// What happens to the record behind everybody's back.
#[derive(Clone, Copy)]
pub(super) enum Accident {
    Nothing,
    Lost,
    Copied,
    Rewound,
}

pub(super) struct World {
    random: StdRng,
    record: Option<Record>,
    copy: Option<Record>,
    now: u64,
    incarnation: String,
    load: Load,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let huge = random.random_bool(0.15);
        let now = match (huge, random.random_range(0..4)) {
            (true, _) => MAX_MICROS - random.random_range(0..5_000_000_000),
            (false, 0) => random.random_range(0..10_000_000),
            (false, _) => 1_760_000_000_000_000 + random.random_range(0..1_000_000_000),
        };
        let load = Load::new(seed);
        Self { random, record: None, copy: None, now, incarnation: "a".into(), load }
    }

    /// The next event.
    pub(super) fn happen(&mut self) -> Event {
        self.pass_time();
        let before = self.accident();
        let reading = Reading { now: Micros::new(self.now), incarnation: self.incarnation.clone() };
        let sent = self.load.next_command(self.record.as_ref(), reading.now);
        let command = sent.command().clone();
        let reply = rules::apply(&mut self.record, &reading, &command);
        if let Ok(reply) = &reply {
            self.load.observe_reply(&sent, reply);
        }
        let record = rules::apply(&mut self.record, &reading, &Command::Read);
        Event { before, command, reading, reply: outcome(reply), record: outcome(record) }
    }

    fn pass_time(&mut self) {
        let seen_at = self.record.as_ref().map_or(self.now, |record| record.seen_at.get());
        let random = &mut self.random;
        let interval = self.load.interval().get().min(10_000_000);
        let now = self.now;
        self.now = match random.random_range(0..100) {
            0..30 => now + random.random_range(0..=interval / 4),
            30..80 => now + random.random_range(0..=2 * interval),
            80..90 => now + random.random_range(0..12_000_000),
            90..92 => now + random.random_range(0..40_000_000_000),
            92 => now.saturating_sub(random.random_range(0..=1_000_001)),
            // Just what counts as standing still, and just more.
            93..95 => seen_at.saturating_sub(random.random_range(1_000_000..=1_000_001)),
            95..97 => now.saturating_sub(random.random_range(0..100_000_000)),
            97 => now.saturating_sub(random.random_range(0..40_000_000_000)),
            _ => now,
        }
        .min(MAX_MICROS);
        if random.random_bool(0.02) {
            let names = ["a", "b", "c0ffee", ""];
            self.incarnation = names[random.random_range(0..names.len())].into();
        }
    }

    fn accident(&mut self) -> Accident {
        match self.random.random_range(0..100) {
            0 => {
                self.record = None;
                Accident::Lost
            }
            1..5 => {
                self.copy = self.record.clone();
                Accident::Copied
            }
            5..7 => {
                self.record = self.copy.clone();
                Accident::Rewound
            }
            _ => Accident::Nothing,
        }
    }
}
