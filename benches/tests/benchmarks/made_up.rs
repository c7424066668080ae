//! A report as a benchmark could bring it, with figures that nobody measured.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::{
    choice::OURS,
    report::{Crowd, Idle, Kill, LongLine, Machine, Pace, Report, Run, Scenario, Spread},
};

const JOBS: u64 = 2_000;
const PROCESSES: u32 = 4;
const RUNS: u64 = 5;
/// In slots.
const KILLED_AT: u64 = 300;
const LEASE: u64 = 100;

/// How a contender paces: the start of each job is its slot and something random.
struct Habit {
    contender: &'static str,
    state: &'static str,
    /// Slots are so many times the interval apart.
    stretch: f64,
    /// How late a start is as a rule, µs.
    late: f64,
    /// So many starts in a hundred are late by up to …
    clumsy: f64,
    /// … so much, µs.
    clump: f64,
    operations: Option<f64>,
    cpu: f64,
    server_cpu: Option<f64>,
}

const fn habit(contender: &'static str, state: &'static str, figures: [f64; 4], cpu: f64) -> Habit {
    let [stretch, late, clumsy, clump] = figures;
    Habit { contender, state, stretch, late, clumsy, clump, operations: None, cpu, server_cpu: None }
}

fn habits() -> Vec<Habit> {
    let ours = |state, late| {
        let operations = Some(1.12);
        Habit { operations, ..habit(OURS, state, [1.0001, late, 0.0, 0.0], 118.4) }
    };
    let with_server = |habit: Habit, operations, server_cpu| Habit {
        operations: Some(operations),
        server_cpu: Some(server_cpu),
        ..habit
    };
    vec![
        with_server(habit("Bottleneck", "redis", [1.0, 350.0, 13.0, 4_000.0], 1_292.0), 5.1, 308.0),
        ours("file on tmpfs", 32.0),
        Habit { server_cpu: Some(96.2), ..ours("redis", 30.0) },
        ours("file on disk", 80.0),
        with_server(
            habit("sharded-interval-queue", "redis", [1.65, 400.0, 30.0, 18_000.0], 1_661.0),
            6.2,
            412.0,
        ),
        with_server(habit("BullMQ", "redis", [1.04, 900.0, 8.0, 8_000.0], 3_614.0), 11.0, 620.0),
        habit("PyrateLimiter", "sqlite", [1.3, 600.0, 60.0, 9_900.0], 860.0),
    ]
}

pub(crate) fn report() -> Report {
    let mut random = StdRng::seed_from_u64(4);
    let mut paces = Vec::new();
    for habit in habits() {
        for interval in [1_000, 10_000, 50_000] {
            for scenario in [Scenario::Saturated, Scenario::Sparse, Scenario::Killed] {
                paces.push(pace(&mut random, &habit, scenario, interval));
            }
        }
        if habit.state == "redis" {
            paces.push(pace(&mut random, &habit, Scenario::Far, 10_000));
        }
    }
    for (contender, state, cpu) in
        [(OURS, "memory", 4.1), ("governor", "none", 3.2), ("leaky-bucket", "none", 5.0)]
    {
        let habit = habit(contender, state, [1.0, 60.0, 0.0, 0.0], cpu);
        paces.push(Pace { processes: 1, ..pace(&mut random, &habit, Scenario::Saturated, 10_000) });
    }
    let haste = habit(OURS, "memory", [1.0, 0.4, 0.0, 0.0], 0.91);
    paces.push(Pace { processes: 1, ..pace(&mut random, &haste, Scenario::Ahead, 1) });
    let failed = habit("sharded-interval-queue", "file on disk", [1.0, 0.0, 0.0, 0.0], 0.0);
    paces.push(Pace {
        runs: Vec::new(),
        sample: Vec::new(),
        failure: Some("ENOENT: no such file or directory, rename 'db.json.tmp'".into()),
        ..pace(&mut random, &failed, Scenario::Saturated, 10_000)
    });
    let version = |(name, version): (&str, &str)| (name.to_owned(), version.to_owned());
    let versions =
        [(OURS, "0.1.0"), ("Bottleneck", "2.19.5"), ("BullMQ", "5.1.0"), ("redis-server", "7.0.15")];
    Report {
        day: "2026-01-31".into(),
        command: "scripts/benchmarks".into(),
        machine: Machine {
            processor: "a processor".into(),
            cores: 2,
            memory_gib: 8,
            system: "Debian GNU/Linux 12 (bookworm), Linux 6.1".into(),
            disk: "ext4".into(),
        },
        versions: versions.map(version).into_iter().collect::<BTreeMap<_, _>>(),
        paces,
        idle: vec![idle("redis", 206.3, 200.9), idle("file on tmpfs", 31.0, 24.5)],
        crowds: crowds(),
        lines: vec![LongLine {
            state: "memory".into(),
            jobs: 1_000_000,
            bytes_per_job: 311.8,
            add_seconds: 0.912,
            cancel_seconds: 0.418,
            starts_per_second: Some(1_130_211.0),
        }],
        tasks: BTreeMap::new(),
    }
}

fn pace(random: &mut StdRng, habit: &Habit, scenario: Scenario, interval: u64) -> Pace {
    let mut sample = Vec::new();
    let runs = (0..RUNS).map(|_| {
        sample = starts(random, habit, scenario, interval);
        run(random, habit, scenario, interval, &sample)
    });
    let runs = runs.collect();
    Pace {
        contender: habit.contender.into(),
        state: habit.state.into(),
        scenario,
        interval,
        processes: PROCESSES,
        jobs: JOBS,
        runs,
        sample,
        failure: None,
    }
}

fn starts(random: &mut StdRng, habit: &Habit, scenario: Scenario, interval: u64) -> Vec<(u32, u64)> {
    let stretch = if scenario == Scenario::Sparse { 2.0 } else { habit.stretch };
    let mut starts = Vec::new();
    for slot in 0..JOBS {
        let process = random.random_range(0..PROCESSES);
        let killed = scenario == Scenario::Killed && slot > KILLED_AT;
        if killed && process == 2 && (slot < KILLED_AT + LEASE || habit.contender != OURS) {
            continue;
        }
        let process = if killed && process == 2 { 1 } else { process };
        let late = -habit.late * random.random::<f64>().max(1e-9).ln();
        let clumsy = random.random_range(0.0..100.0) < habit.clumsy;
        let clump = if clumsy { random.random_range(0.0..habit.clump) } else { 0.0 };
        let at = slot as f64 * stretch * interval as f64 + late + clump;
        starts.push((process, at as u64));
    }
    starts.sort_by_key(|&(_, at)| at);
    let first = starts[0].1;
    starts.into_iter().map(|(process, at)| (process, at - first)).collect()
}

fn run(random: &mut StdRng, habit: &Habit, scenario: Scenario, interval: u64, starts: &[(u32, u64)]) -> Run {
    let gaps: Vec<_> = starts.windows(2).map(|pair| (pair[1].1 - pair[0].1) as f64).collect();
    let ours = habit.contender == OURS;
    let late =
        Spread { min: 2.0, p1: 8.0, p50: habit.late * 0.7, p99: habit.late * 4.6, max: habit.late * 9.0 };
    let jitter = random.random_range(0.97..1.03);
    let kill = Kill {
        waiting: JOBS / 5,
        at: (KILLED_AT as f64 * habit.stretch * interval as f64) as u64,
        lease: if ours { LEASE * interval } else { (JOBS - KILLED_AT) * interval },
        slots_lost: if ours { 25 } else { 350 },
        own_slots: ours.then_some(25),
        rate_during: Some(0.7503 * jitter / habit.stretch),
        rate_after: ours.then_some(0.9997),
    };
    Run {
        started: starts.len() as u64,
        lost: u64::from(habit.contender == "sharded-interval-queue") * 3,
        twice: 0,
        rate: (starts.len() - 1) as f64 * interval as f64 / starts.last().unwrap().1 as f64,
        close: gaps.iter().filter(|&&gap| gap < 0.9 * interval as f64).count() as u64,
        gaps: spread(gaps),
        inversions: if ours { 0 } else { (habit.clumsy * 90.0 * jitter) as u64 },
        lateness: ours.then_some(late),
        closest_slots: ours.then_some(interval),
        operations: habit.operations.map(|operations| operations * jitter),
        cpu: Some(habit.cpu * jitter),
        server_cpu: habit.server_cpu.map(|cpu| cpu * jitter),
        waited: None,
        others: Some(0.04),
        kill: (scenario == Scenario::Killed).then_some(kill),
    }
}

fn spread(mut values: Vec<f64>) -> Spread {
    values.sort_by(f64::total_cmp);
    let at = |part: f64| values[((values.len() - 1) as f64 * part) as usize];
    Spread { min: at(0.0), p1: at(0.01), p50: at(0.5), p99: at(0.99), max: at(1.0) }
}

fn idle(state: &str, start: f64, round_trip: f64) -> Idle {
    let around = |p50: f64| Spread { min: p50 * 0.8, p1: p50 * 0.85, p50, p99: p50 * 1.6, max: p50 * 3.0 };
    let (start, round_trip) = (around(start), around(round_trip));
    let (system_calls, quiet_seconds) = (Some(0), 10);
    Idle {
        state: state.into(),
        samples: 200,
        start,
        round_trip,
        operations: 1.0,
        system_calls,
        quiet_seconds,
    }
}

fn crowds() -> Vec<Crowd> {
    let one = |(state, shards): (&str, u64)| {
        let large = (shards as f64).log10();
        Crowd {
            state: state.into(),
            shards,
            processes: 4,
            interval: 10_000,
            seconds: 20.0,
            rate: 1.0 - 0.0004 * large,
            gaps: spread((0..100).map(|part| 10_000.0 - 90.0 * large + f64::from(part)).collect()),
            close: 2 * shards / 1_000,
            operations_per_second: 110.0 + 30.0 * large,
            operations: 1.1 + 0.3 * large,
            server_share: (state == "redis").then_some(0.011 * large),
            cpu_share: 0.02 * large,
            record_bytes: Some(200 + 96 * shards),
            failure: (shards == 10_000 && state != "redis").then(|| "took longer than 60 s".into()),
        }
    };
    let states = ["redis", "file on tmpfs"].into_iter();
    states.flat_map(|state| [10, 100, 1_000, 10_000].map(|shards| one((state, shards)))).collect()
}
