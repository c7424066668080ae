//! The clocks of the memory backend, and its records put in and taken out.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use interval_queue_conformance::ManualClock;
use interval_queue_contract::{
    Change, Command, MaxRunning, Memory, Micros, OnExisting, QueueName, Record, SharedState, Snapshot,
};
use interval_queue_memory::MemoryState;

fn queue() -> QueueName {
    QueueName::new("clock").unwrap()
}

async fn open(state: &MemoryState) {
    let change = Change::Open {
        interval: Some(Micros::from_millis(1)),
        max_running: MaxRunning::Keep,
        on_existing: OnExisting::Replace,
    };
    let command = Command::Change(change, Memory::default());
    state.apply(&queue(), command).await.unwrap();
}

async fn read(state: &MemoryState) -> Snapshot {
    let reply = state.apply(&queue(), Command::Read).await.unwrap();
    reply.read().unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn it_follows_the_virtual_time_of_tokio_from_one_second_on() {
    let state = MemoryState::new();
    open(&state).await;
    let began = read(&state).await.at;
    assert!(began >= Micros::from_millis(1000));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let passed = (read(&state.clone()).await.at - began).to_duration();
    // Virtual time goes in milliseconds, and tokio rounds a sleep up.
    assert!(passed >= Duration::from_secs(3600) && passed < Duration::from_secs(3601), "{passed:?}");
}

#[tokio::test]
async fn it_takes_another_clock_with_its_incarnation() {
    let clock = ManualClock::new();
    clock.set_incarnation("first");
    let reading = clock.clone();
    let state = MemoryState::with_clock(move || reading.reading());
    open(&state).await;
    assert_eq!(state.snapshot(&queue()).unwrap().incarnation, "first");
    clock.advance(Duration::from_secs(7));
    assert_eq!(read(&state).await.at, clock.now());
}

#[tokio::test]
async fn a_record_can_be_taken_out_put_back_and_forgotten() {
    let state = MemoryState::new();
    assert_eq!(state.snapshot(&queue()), None);
    open(&state).await;
    let record = state.snapshot(&queue()).unwrap();
    let paused = Record { paused: true, ..record };
    state.clone().restore(&queue(), Some(paused.clone()));
    assert_eq!(state.snapshot(&queue()), Some(paused));
    assert_eq!(state.queues().await.unwrap(), [queue()]);
    state.restore(&queue(), None);
    assert_eq!(state.queues().await.unwrap(), []);
}
