//! Tickets: unique and dense, no matter which shard takes them and how often.

use std::time::Duration;

use interval_queue_contract::Step;
use tokio::task::JoinSet;

use crate::client::{Client, Handles, opened, take};

const TAKERS: usize = 8;
const TAKES: u64 = 50;
const SECOND: Duration = Duration::from_secs(1);

/// Shards of both handles that take one by one, all at once, get every number from 1 exactly once.
pub async fn tickets_are_unique_and_dense(handles: Handles) {
    let (one, other) = opened(handles, SECOND).await;
    let mut takers = JoinSet::new();
    for (n, client) in [one.clone(), other].iter().cycle().take(TAKERS).enumerate() {
        takers.spawn(take_many(client.clone(), n, 1));
    }
    let mut tickets = takers.join_all().await.concat();
    tickets.sort_unstable();
    let all: Vec<u64> = (1..=TAKERS as u64 * TAKES).collect();
    assert_eq!(tickets, all, "every ticket exactly once");
    assert_eq!(one.record().await.ticket.get(), TAKERS as u64 * TAKES);
}

/// A take that is tried again under the same request number gets the same tickets, also while others take
/// theirs.
pub async fn a_retried_take_gets_the_same_tickets(handles: Handles) {
    let (one, other) = opened(handles, SECOND).await;
    let mut takers = JoinSet::new();
    for (n, client) in [one.clone(), other].iter().cycle().take(4).enumerate() {
        takers.spawn(take_many(client.clone(), n, 3));
    }
    let mut tickets = takers.join_all().await.concat();
    tickets.sort_unstable();
    let all: Vec<u64> = (1..=4 * TAKES).collect();
    assert_eq!(tickets, all, "every ticket exactly once");
    assert_eq!(one.record().await.ticket.get(), 4 * TAKES);
}

/// Takes one ticket at a time, each request `times` times.
async fn take_many(client: Client, n: usize, times: usize) -> Vec<u64> {
    let mut shard = client.shard(&format!("taker {n}"));
    let mut tickets = Vec::new();
    let mut then = None;
    for request in 1..=TAKES {
        let mut same = Vec::new();
        for _ in 0..times {
            let take = Some(take(request, 1));
            let step = Step { take, then, ..shard.step() };
            same.push(shard.send(step).await.unwrap().taken.expect("a ticket was wanted"));
        }
        assert!(same.iter().all(|taken| *taken == same[0]), "one request, other tickets: {same:?}");
        then = then.or(Some(same[0].first));
        tickets.push(same[0].first.get());
    }
    tickets
}
