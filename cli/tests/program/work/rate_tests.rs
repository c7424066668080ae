//! A rate that is given, changed and removed while a worker runs.

use interval_queue_tasks::TaskQueue;

use super::{lines, worker};
use crate::{place_tests::Backend, process::wait_until};

/// The number of runs that have begun.
fn runs(place: &Backend) -> usize {
    lines(place, "runs").len()
}

/// The tickets that were taken in the record of the rate.
fn tickets(place: &Backend) -> u64 {
    place.status()["ticket"].as_u64().unwrap_or(0)
}

fn add(place: &Backend, count: usize) {
    place.ok(&[&["add", "-q"], vec!["1"; count].as_slice()].concat());
}

async fn a_rate_acts_on_a_worker_that_runs(place: &Backend) {
    let running = worker(place, &["--jobs", "8"], "echo >> runs");
    add(place, 3);
    wait_until("all start at once", || runs(place) == 3);
    // The first slot is used up: nothing more starts within an hour.
    place.ok(&["run", "--every", "1h", "--", "true"]);
    add(place, 5);
    wait_until("the worker waits for a slot", || tickets(place) >= 2);
    assert_eq!(runs(place), 3);
    place.ok(&["set", "--every", "20ms"]);
    wait_until("all start at the new rate", || runs(place) == 8);
    place.ok(&["set", "--every", "1h"]);
    let before = tickets(place);
    add(place, 5);
    wait_until("the worker waits for a far slot", || tickets(place) > before);
    assert_eq!(runs(place), 8);
    let queue = TaskQueue::builder("mail").connect(&place.url()).await.unwrap();
    queue.remove_rate_limit().await.unwrap();
    wait_until("all start at once again", || runs(place) == 13);
    assert!(queue.rate_limit().await.unwrap().is_none(), "the worker does not bring it back");
    running.signal(rustix::process::Signal::TERM);
    running.finish();
}

#[tokio::test]
async fn in_sqlite_a_rate_acts_on_a_worker_that_runs() {
    a_rate_acts_on_a_worker_that_runs(&Backend::sqlite()).await;
}

#[tokio::test]
async fn in_a_directory_a_rate_acts_on_a_worker_that_runs() {
    a_rate_acts_on_a_worker_that_runs(&Backend::directory()).await;
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn in_postgres_a_rate_acts_on_a_worker_that_runs() {
    a_rate_acts_on_a_worker_that_runs(&Backend::postgres()).await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn in_redis_a_rate_acts_on_a_worker_that_runs() {
    a_rate_acts_on_a_worker_that_runs(&Backend::redis()).await;
}
