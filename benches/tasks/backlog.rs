//! Ready work while a large backlog waits to pass its gates.

use std::time::{Duration, Instant};

use interval_queue::task_contract::{Key, NewTask, When};
use tokio::time::sleep;

use crate::{
    case::Scale,
    figures::median,
    hand::Hand,
    place::{Place, Places},
    server::Figures,
    steady,
    task_contender::Contender,
};

/// How many tasks wait for two keys.
const KEYED: usize = 100_000;
const KEYS: [&str; 2] = ["a", "b"];
/// How many tasks are due at one instant.
const DUE: usize = 50_000;
/// Maximum time to add a backlog. Tasks are due when it has passed.
const ADD_TIME: Duration = Duration::from_secs(20);
/// How many tasks one command adds.
const FILLED: usize = 1_000;
const SIZE: usize = 100;
/// How many tasks a worker runs at once.
const JOBS: usize = 10;
/// How often each is measured: a host that does something else makes one of them worth little.
const TURNS: usize = 7;

/// Adds up to `count` tasks that are less urgent than the ready ones, so that only those are measured.
async fn fill(hand: &Hand, count: usize, time: Duration, make: impl Fn(usize, NewTask) -> NewTask) -> usize {
    let (began, mut added) = (Instant::now(), 0);
    while added < count && began.elapsed() < time {
        let some = FILLED.min(count - added);
        hand.add_like(some, SIZE, |number, task| make(number, NewTask { priority: -1, ..task })).await;
        added += some;
    }
    added
}

/// Tasks a second of workers that add what they run: alone, and beside each backlog. They take turns, so that what else
/// the host does concerns all of them.
pub(crate) async fn measure(place: &Place, places: &mut Places, scale: Scale) -> Option<Figures> {
    let time = scale.fill.min(ADD_TIME) / scale.share as u32;
    let beside_keyed = places.make(place.setting);
    let hand = Hand::at(&beside_keyed.url).await;
    let key = |number: usize| Some(Key::new(KEYS[number % KEYS.len()]).unwrap());
    let keyed =
        fill(&hand, KEYED / scale.share, time, |number, task| NewTask { key: key(number), ..task }).await;

    let beside_due = places.make(place.setting);
    let hand = Hand::at(&beside_due.url).await;
    let (began, at) =
        (Instant::now(), hand.clock().await + interval_queue::contract::Micros::from_duration(time));
    let due =
        fill(&hand, DUE / scale.share, time, |_, task| NewTask { not_before: When::At(at), ..task }).await;
    sleep(time.saturating_sub(began.elapsed())).await;

    let mut rates = [const { Vec::new() }; 3];
    for _ in 0..TURNS {
        for (rates, place) in rates.iter_mut().zip([place, &beside_keyed, &beside_due]) {
            rates.push(steady::run(place, &Contender::Worker, JOBS, scale).await?.rate());
        }
    }
    let [alone, beside_keyed, beside_due] = rates;
    let ratio = |beside: Vec<f64>| median(beside.into_iter().zip(&alone).map(|(rate, alone)| rate / alone));
    Some(vec![
        ("alone, tasks a second", median(alone.iter().copied())?),
        ("wait for keys", keyed as f64),
        ("ratio with these", ratio(beside_keyed)?),
        ("due at once", due as f64),
        ("ratio with those due", ratio(beside_due)?),
    ])
}
