//! Very many jobs at once.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::{Starts, open};
use futures::future::join_all;
use interval_queue::MemoryState;
use tokio::time::Instant;

#[allow(clippy::disallowed_methods, reason = "the time it takes is what is tested")]
fn now() -> Instant {
    Instant::now()
}

/// How long it takes to add so many jobs in one future, and to run them.
async fn takes(jobs: usize) -> Duration {
    let queue = open(MemoryState::new(), Duration::from_micros(1)).await;
    let (starts, began) = (Starts::new(), now());
    let handles = join_all((0..jobs).map(|job| queue.add(starts.job(job)))).await;
    let done = join_all(handles.into_iter().map(|handle| handle.unwrap())).await;
    assert!(done.into_iter().all(|result| result.is_ok()));
    assert_eq!(starts.jobs(), (0..jobs).collect::<Vec<_>>());
    began.elapsed()
}

#[tokio::test]
async fn ten_times_the_jobs_in_one_future_take_about_ten_times_as_long() {
    takes(100).await;
    // The least of a few, as a machine is busy now and then.
    let mut few = Duration::MAX;
    let mut many = Duration::MAX;
    for _ in 0..5 {
        few = few.min(takes(2_000).await);
        many = many.min(takes(20_000).await);
    }
    assert!(many < few * 40, "{few:?} {many:?}");
}
