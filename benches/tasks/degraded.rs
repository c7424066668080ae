//! The time of a command on a full store, and on one that may not clean up; the time until tasks of a dead process
//! start again.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::{
    case::Scale,
    figures::median,
    hand::Hand,
    place::{Place, Places},
    server::Figures,
    task_contender::{PROCESSES, ours},
    task_crew::Process,
};

/// Maximum number that wait, and then have ended.
const MANY: usize = 450_000;
/// How many wait for their keys.
const KEYED: usize = 100_000;
const KEYS: [&str; 2] = ["a", "b"];
/// How many are added or run at once to fill a store.
const FILLED: usize = 1_000;
/// How many tasks a command has that is measured.
const BATCH: usize = 10;
/// Maximum number of commands that are measured, and the number that is measured however long it takes.
const COMMANDS: usize = 200;
const SOME: usize = 10;
const SIZE: usize = 100;

/// Microseconds of a step that completes some and leases as many.
async fn look(hand: &mut Hand, scale: Scale) -> f64 {
    let (start, mut steps) = (Instant::now(), Vec::new());
    while steps.len() < COMMANDS && (steps.len() < SOME || start.elapsed() < 4 * scale.time) {
        hand.add(BATCH, SIZE, &[]).await;
        let began = Instant::now();
        hand.step(BATCH).await;
        steps.push(began.elapsed().as_secs_f64() * 1e6);
    }
    median(steps).unwrap()
}

/// Adds so many, or as many as there is time for, and has the store let them in.
async fn fill(hand: &mut Hand, count: usize, keys: &[&str], scale: Scale) -> usize {
    let (began, mut added) = (Instant::now(), 0);
    while added < count / scale.share && began.elapsed() < scale.fill {
        hand.add(FILLED, SIZE, keys).await;
        added += FILLED;
    }
    hand.tidy().await;
    added
}

/// Runs all there are, or as many as there is time for.
async fn drain(hand: &mut Hand, scale: Scale) -> usize {
    let (began, mut ran) = (Instant::now(), 0);
    while began.elapsed() < scale.fill {
        match hand.step(FILLED).await {
            0 => break,
            leased => ran += leased,
        }
    }
    hand.tidy().await;
    ran
}

pub(crate) async fn measure(place: &Place, places: &mut Places, scale: Scale) -> Figures {
    let mut hand = Hand::at(&place.url).await;
    let empty = look(&mut hand, scale).await;
    let waiting = fill(&mut hand, MANY, &[], scale).await;
    let full = look(&mut hand, scale).await;
    let ended = drain(&mut hand, scale).await;
    let drained = look(&mut hand, scale).await;
    let mut figures = vec![
        ("empty, µs", empty),
        ("waiting", waiting as f64),
        ("ratio then", full / empty),
        ("ended", ended as f64),
        ("ratio after", drained / empty),
    ];
    let keyed = places.make(place.setting);
    let mut hand = Hand::at(&keyed.url).await;
    figures.push(("with a key", fill(&mut hand, KEYED, &KEYS, scale).await as f64));
    figures.push(("ratio with keys", look(&mut hand, scale).await / empty));
    let open = places.make(place.setting);
    if let Some(client) = open.server.client().await {
        let mut hand = Hand::at(&open.url).await;
        // A transaction that has looked once keeps all rows that were there from being cleaned up.
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_class").await.unwrap();
        let dead = fill(&mut hand, KEYED, &[], scale).await;
        drain(&mut hand, scale).await;
        figures.push(("ran in a transaction", dead as f64));
        figures.push(("ratio in it", look(&mut hand, scale).await / empty));
    }
    figures
}

/// The shortest lease there is.
const LEASE: Duration = Duration::from_secs(1);
/// How many a process has when it is killed.
const HELD: u64 = 10;
/// More than anything takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Kills a process that runs tasks, and looks how long it takes until others have started them again.
pub(crate) async fn kill(place: &Place) -> Option<Figures> {
    let worker = |hanging: bool| {
        let mut command = ours("runner", place, [HELD as usize]);
        command.args(["--lease-ms", &LEASE.as_millis().to_string()]);
        command.args(hanging.then_some("--hanging"));
        Process::start(command)
    };
    let hand = Hand::at(&place.url).await;
    let mut victim = worker(true).await?;
    victim.begin().await;
    hand.add(HELD as usize, SIZE, &[]).await;
    until(|| victim.told().count == HELD).await?;
    let mut others = Vec::new();
    for _ in 1..PROCESSES {
        others.push(worker(false).await?);
    }
    for other in &mut others {
        other.begin().await;
    }
    // The workers are at work by then, and the lease is renewed.
    sleep(LEASE / 2).await;
    let killed = victim.kill().await;
    until(|| others.iter().map(|other| other.told().count).sum::<u64>() == HELD).await?;
    let mut last = 0;
    for other in others {
        last = last.max(other.end().await.last);
    }
    Some(vec![
        ("lease, ms", LEASE.as_millis() as f64),
        ("until all ran again, ms", last.saturating_sub(killed) as f64 / 1e6),
    ])
}

async fn until(is_so: impl Fn() -> bool) -> Option<()> {
    let began = Instant::now();
    while !is_so() {
        if began.elapsed() > PATIENCE {
            return None;
        }
        sleep(Duration::from_millis(5)).await;
    }
    Some(())
}
