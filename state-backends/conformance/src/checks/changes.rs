//! A change through one handle applies to the shards of the other.

use std::time::Duration;

use interval_queue_contract::{Change, MaxRunning, Micros, Rates, Ticket, WaitReason};

use crate::client::{Client, Handles, open, opened};

const INTERVAL: Duration = Duration::from_millis(1);

/// A queue, and a shard on the other handle with one ticket.
async fn with_a_shard(handles: Handles) -> (Client, crate::client::Shard, Ticket) {
    let (one, other) = opened(handles, INTERVAL).await;
    let mut shard = other.shard("waiting");
    let ticket = shard.take(1, 1).await.first;
    (one, shard, ticket)
}

/// A pause stops the other handle's shards without a time to ask again, until the resume.
pub async fn a_pause_is_seen_by_all(handles: Handles) {
    let (one, mut shard, ticket) = with_a_shard(handles).await;
    let changed = one.change(Change::Pause).await.unwrap();
    assert!(changed.memory.paused);
    let stepped = shard.ask(ticket, Duration::ZERO).await;
    let wait = stepped.wait.expect("the queue is paused");
    assert_eq!((wait.reason, wait.ask_in), (WaitReason::Paused, None));
    one.change(Change::Resume).await.unwrap();
    assert_eq!(shard.ask(ticket, Duration::ZERO).await.grants.len(), 1);
}

/// A hold delays the other handle's slots. A shorter one does not shorten it.
pub async fn a_hold_is_seen_by_all(handles: Handles) {
    let (one, mut shard, ticket) = with_a_shard(handles).await;
    let hour = Micros::from_duration(Duration::from_secs(3600));
    let changed = one.change(Change::Hold(hour)).await.unwrap();
    assert_eq!(changed.memory.held_until, changed.memory.at + hour);
    one.change(Change::Hold(Micros::from_millis(1))).await.unwrap();
    let stepped = shard.ask(ticket, Duration::from_secs(1)).await;
    assert!(stepped.grants.is_empty(), "the queue is held: {stepped:?}");
    assert_eq!(stepped.memory.held_until, changed.memory.held_until);
}

/// Changed settings apply to the other handle's next step and read.
pub async fn settings_are_seen_by_all(handles: Handles) {
    let (one, mut shard, ticket) = with_a_shard(handles).await;
    let rates = Some(Rates::every(Micros::from_millis(1234)));
    let max_running = MaxRunning::AtMost(7);
    one.change(Change::Set { rates, max_running }).await.unwrap();
    let stepped = shard.ask(ticket, Duration::ZERO).await;
    assert_eq!(stepped.memory.settings(), shard.client.record().await.settings());
    assert_eq!(stepped.memory.interval(), Micros::from_millis(1234));
    assert_eq!(stepped.memory.max_running, Some(7));
    let max_running = MaxRunning::Unlimited;
    one.change(Change::Set { rates: None, max_running }).await.unwrap();
    let record = shard.client.record().await;
    assert_eq!((record.interval(), record.max_running), (Micros::from_millis(1234), None));
}

/// A reset ends pause and hold and removes the shards, which continue. Tickets and settings stay.
pub async fn a_reset_is_seen_by_all(handles: Handles) {
    let (one, mut shard, ticket) = with_a_shard(handles).await;
    one.change(Change::Pause).await.unwrap();
    one.change(Change::Hold(Micros::from_millis(3_600_000))).await.unwrap();
    one.change(Change::Reset).await.unwrap();
    let record = shard.client.record().await;
    assert!(!record.paused && record.shards.is_empty(), "{record:?}");
    assert_eq!((record.ticket, record.interval()), (ticket, Micros::from_duration(INTERVAL)));
    assert_eq!(shard.ask(ticket, Duration::from_secs(1)).await.grants.len(), 1);
    let join = open(None, interval_queue_contract::OnExisting::Keep);
    assert_eq!(one.change(join).await.unwrap().memory.current, ticket);
}
