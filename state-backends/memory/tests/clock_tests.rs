//! The clocks of the memory backend, and its records put in and taken out.

use std::time::Duration;

use interval_queue_conformance::ManualClock;
use interval_queue_contract::{Micros, Record, SharedState};
use interval_queue_memory::MemoryState;
use interval_queue_test_support::commands::{mail, open, read};

#[tokio::test(start_paused = true)]
async fn it_follows_the_virtual_time_of_tokio_from_one_second_on() {
    let state = MemoryState::new();
    open(&state).await.unwrap();
    let began = read(&state).await.unwrap().at;
    assert!(began >= Micros::from_millis(1000));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let passed = (read(&state.clone()).await.unwrap().at - began).to_duration();
    // Virtual time goes in milliseconds, and tokio rounds a sleep up.
    assert!(passed >= Duration::from_secs(3600) && passed < Duration::from_secs(3601), "{passed:?}");
}

#[tokio::test]
async fn it_takes_another_clock_with_its_incarnation() {
    let clock = ManualClock::new();
    clock.set_incarnation("first");
    let reading = clock.clone();
    let state = MemoryState::with_clock(move || reading.reading());
    open(&state).await.unwrap();
    assert_eq!(state.snapshot(&mail()).unwrap().incarnation, "first");
    clock.advance(Duration::from_secs(7));
    assert_eq!(read(&state).await.unwrap().at, clock.now());
}

#[tokio::test]
async fn a_record_can_be_taken_out_put_back_and_forgotten() {
    let state = MemoryState::new();
    assert_eq!(state.snapshot(&mail()), None);
    open(&state).await.unwrap();
    let record = state.snapshot(&mail()).unwrap();
    let paused = Record { paused: true, ..record };
    state.clone().restore(&mail(), Some(paused.clone()));
    assert_eq!(state.snapshot(&mail()), Some(paused));
    assert_eq!(state.queues().await.unwrap(), [mail()]);
    state.restore(&mail(), None);
    assert_eq!(state.queues().await.unwrap(), []);
}
