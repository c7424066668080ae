//! What each command costs on each state, alone and while three other processes keep the state busy; and how
//! evenly a busy state serves its processes.
//!
//!     cargo bench --bench states

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that fails says so")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

mod common;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use criterion::Criterion;
use interval_queue_contract::{Command, Micros, QueueName, SharedState};
use tokio::runtime::Runtime;

use common::{
    commands::{self, Speaker},
    places::Backend,
    rivals::{self, Rivals},
};

/// Short enough that whoever takes a ticket may start with it.
const NO_WAIT: Micros = Micros::new(1);
const LONG_WAIT: Micros = Micros::from_millis(3_600_000);
const RIVALS: usize = 3;
/// For how long the commands of each process are counted.
const COUNTED: Duration = Duration::from_secs(3);

fn main() {
    rivals::work_if_copy(&name("start"));
    let mut criterion = common::criterion();
    let runtime = common::runtime();
    for place in Backend::all() {
        let state = runtime.block_on(opened(&place));
        measure(&mut criterion, &runtime, &state, &format!("states/{}", place.name));
        if let Some(address) = place.address().filter(|_| !common::is_dry()) {
            let mut rivals = Rivals::start(RIVALS, &address);
            measure(&mut criterion, &runtime, &state, &format!("states/{}, contended", place.name));
            let shares = runtime.block_on(shares(&*state, &mut rivals));
            println!("states/{}, contended: {shares}", place.name);
        }
    }
    criterion.final_summary();
}

fn name(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

/// A state with two queues: in "start" every ticket may start at once, in "wait" three shards wait.
async fn opened(place: &Backend) -> Arc<dyn SharedState> {
    let state = place.open().await;
    for (queue, interval) in [("start", NO_WAIT), ("wait", LONG_WAIT)] {
        state.apply(&name(queue), commands::open(interval)).await.unwrap();
    }
    for waiting in ["a", "b", "c"] {
        state.apply(&name("wait"), Speaker::new(waiting).step([], 1, 0)).await.unwrap();
    }
    state
}

fn measure(criterion: &mut Criterion, runtime: &Runtime, state: &Arc<dyn SharedState>, group: &str) {
    let mut bench = |what: &str, queue: &str, make: &mut dyn FnMut() -> Command| {
        let queue = name(queue);
        criterion.bench_function(&format!("{group}: {what}"), |bencher| {
            bencher.iter_custom(|count| {
                runtime.block_on(async {
                    let began = Instant::now();
                    for _ in 0..count {
                        state.apply(&queue, make()).await.unwrap();
                    }
                    began.elapsed()
                })
            });
        });
    };
    let mut starts = Speaker::new("starts");
    bench("take and start", "start", &mut || starts.step([], 1, 1));

    // A new one each time: the numbers of its steps begin anew.
    let mut waits = Speaker::new(&format!("waits {group}"));
    let first = runtime.block_on(state.apply(&name("wait"), waits.step([], 1, 0)));
    let ticket = first.unwrap().stepped().unwrap().taken.unwrap().first;
    bench("ask too early", "wait", &mut || waits.step([ticket], 0, 0));

    bench("change", "wait", &mut || commands::change(LONG_WAIT));
    bench("read", "wait", &mut || Command::Read);
}

/// How many commands each process got through in the same time: this one first.
async fn shares(state: &dyn SharedState, rivals: &mut Rivals) -> String {
    let (queue, mut speaker, mut own) = (name("start"), Speaker::new("counted"), 0);
    let before = rivals.commands();
    let began = Instant::now();
    while began.elapsed() < COUNTED {
        state.apply(&queue, speaker.step([], 1, 1)).await.unwrap();
        own += 1;
    }
    let others = rivals.commands().into_iter().zip(before).map(|(after, before)| after - before);
    let counts: Vec<u64> = [own].into_iter().chain(others).collect();
    let sum: u64 = counts.iter().sum();
    let shares = counts.iter().map(|&count| format!("{:.1} %", 100.0 * count as f64 / sum as f64));
    let shares: Vec<String> = shares.collect();
    let rate = sum as f64 / began.elapsed().as_secs_f64();
    format!("{rate:.0} commands a second, of which each process had {}", shares.join(", "))
}
