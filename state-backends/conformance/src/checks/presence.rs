//! Presence: the data of a shard in the record, and its lifetime.

use std::time::Duration;

use interval_queue_contract::{
    Change, LastTake, MaxRunning, Micros, Presence, Step, Stepped, Ticket, WaitReason,
};

use crate::client::{Handles, LONG, Shard, ask, opened};

const SHORT_LEASE: Micros = Micros::from_millis(150);
const HOUR: Duration = Duration::from_secs(3600);

/// A shard's presence is stored as sent.
pub async fn a_presence_is_stored_as_sent(handles: Handles) {
    let (one, other) = opened(handles, HOUR).await;
    let mut shard = one.shard("shard \"7\" {é}");
    let first = shard.take(9, 4).await.first;
    let step = Step { then: Some(first.after(2)), running: u32::MAX - 7, ..shard.step() };
    let label = step.label.clone();
    let stepped = shard.send(step).await.unwrap();
    assert!(stepped.present);
    let shards = other.snapshot().await.record.shards;
    let expected = Presence {
        head: Some(first.after(2)),
        weight: 1,
        running: u32::MAX - 7,
        expires_at: stepped.memory.at + Micros::from_duration(LONG),
        sequence: 2,
        last_take: Some(LastTake { request: 9, first, count: 4 }),
        granted: Vec::new(),
        label,
    };
    assert_eq!(shards.into_iter().collect::<Vec<_>>(), [(shard.id.clone(), expected)]);
}

/// A shard without waiting or running jobs has no presence.
pub async fn an_idle_shard_leaves_no_presence(handles: Handles) {
    let (one, other) = opened(handles, HOUR).await;
    let mut shard = one.shard("done");
    let stepped = shard.start_one().await;
    assert!(!stepped.present);
    assert!(other.record().await.shards.is_empty(), "nothing is waiting, and no limit is set");
    shard.take(1, 1).await;
    assert_eq!(other.record().await.shards.len(), 1);
    let idle = shard.step();
    assert!(!shard.send(idle).await.unwrap().present);
    assert!(other.record().await.shards.is_empty(), "nothing is left to do");
}

/// `max_running` counts the jobs of all shards. A dead shard's jobs count until its lease ends.
pub async fn running_jobs_are_counted_until_the_lease_ends(handles: Handles) {
    let (one, other) = opened(handles, Duration::from_micros(1)).await;
    let max_running = MaxRunning::AtMost(2);
    one.change(Change::Set { rates: None, max_running }).await.unwrap();
    let (mut dead, mut waiting) = (one.shard("dead"), other.shard("waiting"));
    dead.start_one().await;
    let two = Step { running: 2, ..dead.step() };
    dead.send(two).await.unwrap();

    let ticket = waiting.take(1, 1).await.first;
    let stepped = waiting.ask(ticket, Duration::ZERO).await;
    assert_eq!(stepped.wait.map(|wait| wait.reason), Some(WaitReason::AtMaxRunning));
    let last = Step { running: 2, lease: SHORT_LEASE, ..dead.step() };
    let died = dead.send(last).await.unwrap().memory.at;
    let granted = until_granted(&mut waiting, ticket).await;
    assert!(granted.memory.at >= died + SHORT_LEASE, "a living shard's jobs were not counted");
    assert_eq!(other.record().await.shards.len(), 1, "the dead shard is gone, the other runs");
}

/// A dead shard's ticket blocks later tickets until its lease ends.
pub async fn a_dead_shard_blocks_until_its_lease_ends(handles: Handles) {
    let (one, other) = opened(handles, HOUR).await;
    one.shard("opener").start_one().await;
    let (mut dead, mut waiting) = (one.shard("dead"), other.shard("waiting"));
    let blocker = dead.take(1, 1).await.first;
    let ticket = waiting.take(1, 1).await.first;
    let died = leave(&mut dead, blocker).await;
    let mut stepped = waiting.ask(ticket, Duration::ZERO).await;
    while let Some(WaitReason::Behind { shard, ticket: before }) =
        stepped.wait.clone().map(|wait| wait.reason)
    {
        assert_eq!((&shard, before), (&dead.id, blocker));
        assert!(stepped.memory.at < died + SHORT_LEASE, "the lease of {shard} has ended");
        pause_for(&stepped).await;
        stepped = waiting.ask(ticket, Duration::ZERO).await;
    }
    assert!(stepped.memory.at >= died + SHORT_LEASE, "{stepped:?}");
    assert_eq!(stepped.wait.map(|wait| wait.reason), Some(WaitReason::Slot));
    assert_eq!(one.record().await.shards.len(), 1, "the dead shard is gone, the other waits");
}

/// Every reply counts the shards with a presence after its command: not idle, expired or reset
/// ones.
pub async fn a_reply_counts_the_shards(handles: Handles) {
    let (one, other) = opened(handles, HOUR).await;
    let (mut first, mut second, mut third) = (one.shard("first"), other.shard("second"), one.shard("third"));
    one.shard("opener").start_one().await;
    let idle = first.step();
    assert_eq!(first.send(idle).await.unwrap().memory.shards, 0, "it has nothing to do");
    let ticket = first.take(1, 1).await.first;
    assert_eq!(first.memory.shards, 1, "it waits");
    let died = leave(&mut first, ticket).await;
    second.take(1, 1).await;
    let seen = second.memory;
    assert!(seen.shards == 2 || seen.at >= died + SHORT_LEASE, "another one waits: {seen:?}");
    tokio::time::sleep(SHORT_LEASE.to_duration() * 2).await;
    third.take(1, 1).await;
    assert_eq!(third.memory.shards, 2, "one is dead");
    let idle = second.step();
    assert_eq!(second.send(idle).await.unwrap().memory.shards, 1, "it has nothing left to do");
    assert_eq!(
        other.change(Change::Pause).await.unwrap().memory.shards,
        1,
        "who changes something is no shard"
    );
    assert_eq!(one.change(Change::Reset).await.unwrap().memory.shards, 0);
}

/// The last step of a dying shard: a short lease, and one outstanding ticket.
async fn leave(shard: &mut Shard, ticket: Ticket) -> Micros {
    let step = Step { lease: SHORT_LEASE, ask: vec![ask(ticket.get())], ..shard.step() };
    shard.send(step).await.unwrap().memory.at
}

async fn until_granted(shard: &mut Shard, ticket: Ticket) -> Stepped {
    loop {
        let stepped = shard.ask(ticket, Duration::ZERO).await;
        if !stepped.grants.is_empty() {
            return stepped;
        }
        pause_for(&stepped).await;
    }
}

async fn pause_for(stepped: &Stepped) {
    let wait = stepped.wait.as_ref().and_then(|wait| wait.ask_in);
    tokio::time::sleep(wait.expect("it says when to ask again").to_duration()).await;
}
