//! Many queues by their keys, seen and acted on together, and settings that are loaded and loaded again.

use std::{
    error::Error as _,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use interval_queue::{ErrorKind, IntervalQueue, IntervalQueues, MemoryState, QueueName, QueuesBuilder};
use interval_queue_conformance::Faulty;
use tokio::time::sleep;

use crate::common::ms;

fn name(key: &str) -> String {
    format!("customer/{key}")
}

/// Queues on a state whose interval is loaded in milliseconds; 0 cannot be.
fn loading(interval: &Arc<AtomicU64>) -> QueuesBuilder {
    let interval = interval.clone();
    IntervalQueues::loading(move |key: String| {
        let interval = interval.clone();
        async move {
            sleep(ms(50)).await;
            match interval.load(SeqCst) {
                0 => Err(io::Error::other("no such customer")),
                millis => Ok(IntervalQueue::builder(name(&key)).interval(ms(millis))),
            }
        }
    })
}

async fn three(state: Faulty) -> IntervalQueues {
    let queues = IntervalQueues::new(state, |key| IntervalQueue::builder(name(key)).interval(ms(100)));
    for key in ["b", "c", "a"] {
        queues.get(key).await.unwrap();
    }
    queues
}

fn paused(state: &MemoryState) -> Vec<bool> {
    let of = |key| state.snapshot(&QueueName::new(name(key)).unwrap()).unwrap().paused;
    ["a", "b", "c"].map(of).to_vec()
}

#[tokio::test(start_paused = true)]
async fn listing_the_kept_keys_does_not_count_as_use() {
    let queues = three(Faulty::new(MemoryState::new())).await;
    let keys: Vec<_> = queues.keys().iter().map(ToString::to_string).collect();
    assert_eq!(keys, ["a", "b", "c"]);
    let names: Vec<_> = queues.iter().map(|(_, queue)| queue.name().to_string()).collect();
    assert_eq!(names, ["customer/a", "customer/b", "customer/c"]);
    sleep(ms(59_000)).await;
    assert_eq!(queues.iter().len(), 3);
    sleep(ms(2_000)).await;
    queues.get("d").await.unwrap();
    assert_eq!(queues.keys().len(), 1, "to be looked at is no use");
}

#[tokio::test(start_paused = true)]
async fn pause_and_resume_reach_all_queues_despite_a_failing_one() {
    let memory = MemoryState::new();
    let state = Faulty::new(memory.clone());
    let queues = three(state.clone()).await;
    queues.pause_all().await.unwrap();
    assert_eq!(paused(&memory), [true; 3]);
    queues.resume_all().await.unwrap();
    assert_eq!(paused(&memory), [false; 3]);
    state.change(|faults| faults.outage = true);
    let error = queues.pause_all().await.unwrap_err();
    assert!(error.kind() == ErrorKind::State && error.to_string().contains("key \"a\""), "{error}");
    state.change(|faults| faults.outage = false);
    queues.get("b").await.unwrap().shutdown(Duration::ZERO).await;
    queues.pause_all().await.unwrap();
    assert_eq!(paused(&memory), [true; 3], "a queue that takes no jobs can be paused");
}

#[tokio::test(start_paused = true)]
async fn a_tick_asks_for_those_that_wait_and_wakes_them() {
    let memory = MemoryState::new();
    let state = Faulty::new(memory.clone());
    let queues = three(state.clone()).await;
    queues.pause_all().await.unwrap();
    let waiting: Vec<_> = ["a", "c"]
        .map(|key| {
            let queues = queues.clone();
            tokio::spawn(async move { queues.get(key).await.unwrap().turn().await.map(drop) })
        })
        .into();
    sleep(ms(20)).await;
    let steps = state.counts().steps;
    let ticks = queues.tick().await;
    let found: Vec<_> = ticks.iter().map(|(key, tick)| (&**key, tick.waiting, tick.paused)).collect();
    assert_eq!(found, [("a", 1, true), ("c", 1, true)]);
    assert_eq!(state.counts().steps, steps + 2, "nobody else is asked");
    // Another process resumes them.
    three(state).await.resume_all().await.unwrap();
    queues.tick().await;
    for turn in waiting {
        turn.await.unwrap().unwrap();
    }
    assert!(queues.tick().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn settings_are_loaded_once_for_all_waiters() {
    let interval = Arc::new(AtomicU64::new(0));
    let queues = loading(&interval).open(MemoryState::new());
    let error = queues.get("ada").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Settings);
    assert!(error.to_string().contains("key \"ada\""), "{error}");
    assert_eq!(error.source().unwrap().to_string(), "no such customer");
    assert!(queues.is_empty());
    interval.store(200, SeqCst);
    let (one, other) = tokio::join!(queues.get("ada"), queues.get("ada"));
    let one = one.unwrap();
    assert_eq!((one.interval(), one.shard_id()), (ms(200), other.unwrap().shard_id()));
}

#[tokio::test(start_paused = true)]
async fn reloaded_settings_hold_for_all_shards_at_once() {
    let interval = Arc::new(AtomicU64::new(200));
    let memory = MemoryState::new();
    let (queues, elsewhere) = (loading(&interval).open(memory.clone()), loading(&interval).open(memory));
    let (here, there) = (queues.get("ada").await.unwrap(), elsewhere.get("ada").await.unwrap());
    interval.store(700, SeqCst);
    assert_eq!(queues.get("ada").await.unwrap().interval(), ms(200), "it is kept as it is");
    let reloaded = queues.reload("ada").await.unwrap();
    assert_eq!((reloaded.shard_id(), here.interval()), (here.shard_id(), ms(700)));
    drop(there.turn().await.unwrap());
    assert_eq!(there.interval(), ms(700));
    // One that is not kept is opened.
    assert_eq!(queues.reload("bob").await.unwrap().interval(), ms(700));
    interval.store(0, SeqCst);
    let error = queues.reload("ada").await.unwrap_err();
    assert_eq!((error.kind(), here.interval()), (ErrorKind::Settings, ms(700)));
}

#[tokio::test(start_paused = true)]
async fn settings_that_name_another_queue_or_panic_change_nothing() {
    let calls = AtomicU64::new(0);
    let queues = IntervalQueues::new(MemoryState::new(), move |key| match calls.fetch_add(1, SeqCst) {
        0 => IntervalQueue::builder(name(key)).interval(ms(100)),
        1 => IntervalQueue::builder("other").interval(ms(1)),
        _ => panic!("no settings"),
    });
    let queue = queues.get("ada").await.unwrap();
    let error = queues.reload("ada").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("customer/ada") && error.to_string().contains("other"), "{error}");
    let error = queues.reload("ada").await.unwrap_err();
    assert!(error.kind() == ErrorKind::Panicked && error.to_string().contains("no settings"), "{error}");
    assert_eq!(queue.interval(), ms(100));
}
