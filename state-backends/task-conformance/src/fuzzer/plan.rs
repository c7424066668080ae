//! The plan of a seed: its tasks and its faults.

use std::collections::BTreeMap;

use fastrand::Rng;
use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    Json, Key, Kind, NewEdge, NewTask, OnConflict, OnFailure, Overlap, PolicyOverride, Tag, TaskId, Unique,
    Until, When,
};

/// End of the faults, in seconds from the start.
pub(super) const FAULTS_END: u64 = 3_000;

/// Everything decided before the run starts.
#[derive(Debug)]
pub(super) struct Plan {
    /// Only outages and forward clock steps, which must not cost a lease.
    pub(super) only_outages: bool,
    /// Start and end of each outage.
    pub(super) outages: Vec<(u64, u64)>,
    /// Instant and size of each clock step, in seconds.
    pub(super) steps: Vec<(u64, i64)>,
    /// Instants of the copy and of the roll-back to it.
    pub(super) roll_back: Option<(u64, u64)>,
    pub(super) tasks: Vec<NewTask>,
    pub(super) key_limit: u32,
    pub(super) max_running: Option<u32>,
    pub(super) overlap: Overlap,
    pub(super) workers: u32,
    pub(super) all_kinds: bool,
    pub(super) operated: bool,
}

impl Plan {
    pub(super) fn of(seed: u64, rng: &mut Rng, can_roll_back: bool) -> Self {
        let only_outages = seed.is_multiple_of(4);
        let outages = (0..pick(rng, &[0, 1, 2])).map(|_| {
            let from = rng.u64(..FAULTS_END - 200);
            (from, from + rng.u64(20..=120))
        });
        let outages = outages.collect();
        let steps = (0..pick(rng, &[0, 0, 1])).map(|_| {
            let back = !only_outages && rng.bool();
            let by = rng.i64(20..=900);
            (rng.u64(..FAULTS_END - 200), if back { -by } else { by })
        });
        let steps = steps.collect();
        let rolls = can_roll_back && seed % 8 == 3;
        let roll_back = rolls.then(|| {
            let at = rng.u64(100..FAULTS_END - 600);
            (at, at + rng.u64(5..=500))
        });
        let total = rng.usize(10..=40);
        let ordered: BTreeMap<&str, bool> =
            ["a", "b", "Δ c"].into_iter().map(|key| (key, rng.u8(..10) < 3)).collect();
        let mixed = rng.u8(..4) == 0;
        let tasks = (0..total).map(|n| task(rng, n, &ordered, mixed)).collect();
        Self {
            only_outages,
            outages,
            steps,
            roll_back,
            tasks,
            key_limit: pick(rng, &[1, 1, 2]),
            max_running: pick(rng, &[None, None, Some(3)]),
            overlap: pick(rng, &[Overlap::Allow, Overlap::Allow, Overlap::Skip, Overlap::Keep]),
            workers: rng.u32(1..=4),
            all_kinds: rng.bool(),
            operated: rng.u8(..5) > 0,
        }
    }

    /// The clock at second `now` of the run.
    pub(super) fn clock(&self, now: u64) -> Micros {
        const BEGAN: i64 = 1_750_000_000;
        let stepped: i64 = self.steps.iter().filter(|&&(at, _)| at <= now).map(|&(_, by)| by).sum();
        let seconds = BEGAN + now.cast_signed() + stepped;
        Micros::from_millis(seconds.unsigned_abs() * 1000)
    }

    pub(super) fn is_out(&self, now: u64) -> bool {
        // The queue is opened first.
        now > 0 && self.outages.iter().any(|&(from, until)| (from..until).contains(&now))
    }
}

pub(super) fn seconds(n: u64) -> Micros {
    Micros::from_millis(n * 1000)
}

pub(super) fn pick<T: Clone>(rng: &mut Rng, some: &[T]) -> T {
    some[rng.usize(..some.len())].clone()
}

pub(super) fn kinds() -> Vec<Kind> {
    ["default", "mail", "thumb nail"].map(kind).into()
}

#[allow(clippy::expect_used, reason = "the names are known")]
fn kind(text: &str) -> Kind {
    Kind::new(text).expect("a name")
}

#[allow(clippy::expect_used, reason = "the names are known")]
pub(super) fn key(text: &str) -> Key {
    Key::new(text).expect("a name")
}

#[allow(clippy::expect_used, reason = "the names are known")]
pub(super) fn tag(text: &str) -> Tag {
    Tag::new(text).expect("a name")
}

/// Ids are made of names, so their order differs from that of numbers.
pub(super) fn id(n: usize) -> TaskId {
    TaskId::named(&n.to_string())
}

fn task(rng: &mut Rng, n: usize, ordered: &BTreeMap<&str, bool>, mixed: bool) -> NewTask {
    let mut new = NewTask::new(id(n), Json::stored(n.to_string()));
    new.kind = pick(rng, &kinds());
    new.priority = pick(rng, &[0, 0, 1, -3]);
    if rng.u8(..10) < 4 {
        for _ in 0..rng.usize(1..=3).min(n) {
            let up = id(rng.usize(..n));
            let on_failure =
                pick(rng, &[OnFailure::Cancel, OnFailure::Cancel, OnFailure::Run, OnFailure::Wait]);
            if new.edges.iter().all(|edge| edge.up != up) {
                new.edges.push(NewEdge { up, name: None, on_failure });
            }
        }
    }
    new.not_before = match rng.u8(..6) {
        0 | 1 => When::After(seconds(rng.u64(..=300))),
        _ => When::default(),
    };
    if let Some(name) = pick(rng, &[None, Some("a"), Some("b"), Some("Δ c")]) {
        new.key = Some(key(name));
        new.ordered = if mixed { rng.u8(..10) < 3 } else { ordered[name] };
    }
    if rng.u8(..12) == 0 {
        new.deadline = Some(When::After(seconds(rng.u64(20..=2_000))));
    }
    if let Some(name) = pick(rng, &[None, None, None, Some("u"), Some("v")]) {
        new.unique = Some(Unique { name: key(name), until: pick(rng, &[Until::Ended, Until::Leased]) });
        new.on_conflict = match rng.u8(..8) {
            0..4 => OnConflict::Keep,
            4..7 if new.edges.is_empty() => OnConflict::Replace,
            4..7 => OnConflict::Keep,
            _ => OnConflict::Refuse,
        };
    }
    new.policy = PolicyOverride {
        max_attempts: Some(rng.u32(1..=4)),
        max_retries: Some(rng.u32(0..=3)),
        backoff: Some(seconds(rng.u64(1..=20))),
        max_backoff: Some(seconds(60)),
        timeout: None,
    };
    if rng.bool() {
        new.tags.push(tag("odd"));
    }
    new
}
