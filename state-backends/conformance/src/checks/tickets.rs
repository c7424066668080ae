//! Tickets: unique and dense, whichever shard takes them, with repeats.

use std::time::Duration;

use interval_queue_contract::Step;

use crate::client::{Client, Handles, opened, take, together};

const TAKES: u64 = 50;

/// Concurrent takes of one ticket get every number from 1 exactly once.
pub async fn tickets_are_unique_and_dense(handles: Handles) {
    take_together(handles, 8, 1).await;
}

/// A take repeated with its request number gets the same tickets, even during other takes.
pub async fn a_retried_take_gets_the_same_tickets(handles: Handles) {
    take_together(handles, 4, 3).await;
}

/// Runs `takers` shards concurrently, each request `times` times.
async fn take_together(handles: Handles, takers: u64, times: usize) {
    let (one, other) = opened(handles, Duration::from_secs(1)).await;
    let mut tickets = together([&one, &other], takers, |client, n| take_many(client, n, times)).await;
    tickets.sort_unstable();
    let all: Vec<u64> = (1..=takers * TAKES).collect();
    assert_eq!(tickets, all, "every ticket exactly once");
    assert_eq!(one.record().await.ticket.get(), takers * TAKES);
}

/// Takes one ticket at a time, each request `times` times.
async fn take_many(client: Client, n: u64, times: usize) -> Vec<u64> {
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
