//! Makes a plan from a seed.

use std::time::Duration;

use fastrand::Rng;
use interval_queue_contract::Micros;
use interval_queue_task_contract::{OnConflict, OnFailure, Policy, State, Until, Verb};

use super::task_plan::{Batch, Ends, Event, Operation, Plan, Run, Shape, TaskPlan, Timed, WorkerPlan};
use crate::{
    Fault,
    plan::{Event as Trouble, few, ms, pick, some, trouble},
};

/// Outlasts the time between two retries of a worker.
pub(super) const LONG_LEASE: Duration = Duration::from_secs(12);

pub(super) const KINDS: [&str; 3] = ["call", "mail", "scan"];
pub(super) const KEYS: [&str; 2] = ["k", "l"];
const NAMES: [&str; 2] = ["u", "v"];

pub(super) fn plan(random: &mut Rng, seed: u64, shape: &Shape) -> Plan {
    let is_faultless = shape.faults.is_empty();
    // In some plans only the store fails.
    let gentle =
        [Fault::Outage, Fault::Restart, Fault::ClockStep, Fault::Drift, Fault::Control, Fault::Cancel];
    let is_gentle = seed.is_multiple_of(8) && shape.faults.contains(&Fault::Outage);
    let faults: Vec<_> =
        shape.faults.iter().copied().filter(|fault| !is_gentle || gentle.contains(fault)).collect();
    let has = |fault| faults.contains(&fault);
    let lease = if is_gentle { LONG_LEASE } else { pick(random, &[ms(1_000), ms(1_500), ms(3_000)]) };
    let longest = pick(random, &[ms(1), ms(5), ms(20), ms(60)]);
    let workers = (0..shape.workers.max(1)).map(|_| WorkerPlan {
        kinds: if is_faultless || random.u8(..3) > 0 {
            KINDS.to_vec()
        } else {
            let without = random.usize(..KINDS.len());
            KINDS.into_iter().enumerate().filter(|(n, _)| *n != without).map(|(_, kind)| kind).collect()
        },
        jobs: pick(random, &[1, 2, 3]),
        prefetch: pick(random, &[0, 2, 1_000]),
        drift: if has(Fault::Drift) { random.i32(-450..=450) } else { 0 },
        delay: if has(Fault::Delay) {
            (some(random, longest), some(random, longest))
        } else {
            (ms(1), ms(1))
        },
    });
    let workers: Vec<_> = workers.collect();
    let interval = (random.u8(..4) == 0).then(|| pick(random, &[ms(20), ms(50), ms(200)]));
    let interval = shape.interval.or(interval);
    let max_running = (random.u8(..3) == 0).then(|| random.u32(1..4));
    let key_limit = pick(random, &[1, 1, 2]);
    let time_out = pick(random, &[ms(150), ms(500), ms(2_000)]);
    let wakes = random.u8(..3) > 0;
    let tasks = (0..shape.tasks).map(|number| task(random, number, is_faultless)).collect();
    let mut plan = Plan {
        seed,
        lease: shape.lease.unwrap_or(lease),
        interval,
        max_running,
        key_limit,
        time_out,
        wakes,
        workers,
        tasks,
        events: Vec::new(),
    };
    let length = pick(random, &[ms(100), ms(1_500), ms(4_000)]);
    add_batches(&mut plan, random, length);
    if !is_faultless && !faults.is_empty() {
        for _ in 0..shape.tasks * shape.faults_per_ten_tasks / 10 {
            let fault = faults[random.usize(..faults.len())];
            if let Some(event) = fault_event(random, &plan, fault, is_gentle) {
                // Runs go on for a while after the last task was added.
                let at = some(random, length + ms(2_000));
                plan.events.push(Timed { at, event, fault: Some(fault) });
            }
        }
    }
    plan.events.sort_by_key(|timed| timed.at);
    plan
}

/// Tasks wait for earlier ones, so batches are added in order.
fn add_batches(plan: &mut Plan, random: &mut Rng, length: Duration) {
    let mut at: Vec<Duration> = (0..plan.tasks.len()).map(|_| some(random, length)).collect();
    at.sort();
    let mut first = 0;
    while first < plan.tasks.len() {
        let last = plan.tasks.len().min(first + random.usize(1..=3));
        let batch = Batch { worker: random.usize(..plan.workers.len()), tasks: (first..last).collect() };
        plan.events.push(Timed { at: at[first], event: Event::Add(batch), fault: None });
        first = last;
    }
}

fn fault_event(random: &mut Rng, plan: &Plan, fault: Fault, is_gentle: bool) -> Option<Event> {
    let worker = random.usize(..plan.workers.len());
    if let Some(trouble) = trouble(random, fault, worker) {
        return Some(Event::Trouble(match trouble {
            Trouble::ClockStep { micros } if is_gentle => Trouble::ClockStep { micros: micros.abs() },
            // Long stops find little more, and cost time.
            Trouble::Stop { shard, time } => Trouble::Stop { shard, time: time.min(ms(6_000)) },
            trouble => trouble,
        }));
    }
    let verb = pick(random, &[Verb::Cancel, Verb::Retry, Verb::Retry, Verb::Release, Verb::Purge]);
    let task = random.usize(..plan.tasks.len());
    let operation = match fault {
        Fault::Cancel => Operation::Task(Verb::Cancel, task),
        Fault::Control => match random.u8(..15) {
            0 => return Some(Event::Retire { worker }),
            1 => Operation::Pause,
            2 => Operation::Resume,
            3 => Operation::PauseKind(pick(random, &KINDS), random.bool()),
            4 => Operation::KeyLimit(pick(random, &KEYS), pick(random, &[None, Some(0), Some(1), Some(2)])),
            5 | 6 => Operation::Limits {
                max_running: pick(random, &[None, Some(1), Some(3)]),
                key_limit: random.u32(1..=3),
            },
            7 => Operation::Key(verb, pick(random, &KEYS)),
            8 => Operation::Unique(verb, pick(random, &NAMES)),
            11 if !is_gentle => Operation::DeclareLost(random.usize(..plan.workers.len())),
            11 => Operation::Unique(verb, pick(random, &NAMES)),
            9 => Operation::State(verb, pick(random, &State::ALL)),
            10 if plan.interval.is_some() => Operation::Hold(few(random, ms(1_000))),
            12..15 => Operation::Rate(pick(random, &[None, Some(ms(20)), Some(ms(60)), Some(ms(200))])),
            _ => Operation::Task(verb, task),
        },
        _ => return None,
    };
    Some(Event::Operate { worker, operation })
}

fn task(random: &mut Rng, number: usize, is_faultless: bool) -> TaskPlan {
    let mut task = TaskPlan {
        kind: pick(random, &KINDS),
        priority: pick(random, &[0, 0, 0, 1, -2]),
        key: pick(random, &[None, None, None, Some(KEYS[0]), Some(KEYS[1])]),
        ordered: false,
        unique: None,
        on_conflict: OnConflict::Keep,
        delay: (random.u8(..5) == 0).then(|| few(random, ms(2_000))),
        deadline: (random.u8(..12) == 0).then(|| ms(200) + some(random, ms(4_000))),
        policy: Policy {
            max_attempts: random.u32(1..=4),
            max_retries: random.u32(0..=3),
            backoff: Micros::from_millis(random.u64(10..=200)),
            max_backoff: Micros::from_millis(500),
            timeout: pick(random, &[None, None, None, Some(Micros::from_millis(400))]),
        },
        after: Vec::new(),
        runs: Vec::new(),
    };
    task.ordered = task.key == Some(KEYS[1]);
    if random.u8(..5) < 2 {
        for _ in 0..random.usize(1..=2).min(number) {
            let up = random.usize(..number);
            let on_failure =
                pick(random, &[OnFailure::Cancel, OnFailure::Cancel, OnFailure::Run, OnFailure::Wait]);
            if task.after.iter().all(|(other, _)| *other != up) {
                task.after.push((up, on_failure));
            }
        }
    }
    if random.u8(..4) == 0 {
        task.unique = Some((pick(random, &NAMES), pick(random, &[Until::Ended, Until::Leased])));
        task.on_conflict = match random.u8(..8) {
            0..4 => OnConflict::Keep,
            4..7 if task.after.is_empty() => OnConflict::Replace,
            4..7 => OnConflict::Keep,
            _ => OnConflict::Refuse,
        };
    }
    for _ in 0..random.usize(0..=2) {
        let run = run(random, task.policy.timeout.is_some(), is_faultless);
        task.runs.push(run);
    }
    let longest = if task.policy.timeout.is_some() { ms(300) } else { ms(1_200) };
    let takes = pick(random, &[ms(1), ms(30), ms(300), longest]);
    task.runs.push(Run { takes: some(random, takes), tells: false, listens: true, ends: Ends::Done });
    task
}

fn run(random: &mut Rng, ends_in_time: bool, is_faultless: bool) -> Run {
    let ends = match random.u8(..16) {
        0..3 => Ends::Error,
        3 => Ends::Permanent,
        4 | 5 => Ends::Retry(few(random, ms(800))),
        6 | 7 => Ends::Panic,
        8 => Ends::Released,
        9 if ends_in_time => Ends::Hangs,
        10 if !is_faultless => Ends::Strays(some(random, ms(4_000))),
        _ => Ends::Done,
    };
    let takes = few(random, ms(1_500));
    Run { takes, tells: random.u8(..4) == 0, listens: random.u8(..6) > 0, ends }
}
