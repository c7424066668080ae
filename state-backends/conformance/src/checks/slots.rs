//! Slots: an interval apart and in ticket order, whichever shard requests them.

use std::{collections::VecDeque, time::Duration};

use interval_queue_contract::{Ask, MAX_LEAD, Micros, Step, Ticket, WaitReason};
use tokio::task::JoinSet;

use crate::client::{Client, Handles, ask, opened, together};

const INTERVAL: Duration = Duration::from_millis(2);
const SHARDS: u64 = 6;
const JOBS: u32 = 20;

/// Concurrent requests get slots at least an interval apart, one for every ticket.
pub async fn slots_keep_their_distance(handles: Handles) {
    let (one, other) = opened(handles, INTERVAL).await;
    let mut slots = together([&one, &other], SHARDS, work).await;
    slots.sort_unstable();
    assert_eq!(slots.len() as u64, SHARDS * u64::from(JOBS), "one slot for each ticket");
    let interval = Micros::from_duration(INTERVAL);
    for pair in slots.windows(2) {
        let gap = pair[1] - pair[0];
        assert!(gap >= interval, "two slots are {} µs apart", gap.get());
    }
}

/// Each ticket gets its own slot whichever is requested first, unless its slot has passed.
pub async fn slots_follow_the_tickets(handles: Handles) {
    let interval = Micros::from_millis(400);
    let (one, other) = opened(handles, interval.to_duration()).await;
    let began = one.shard("opener").start_one().await;
    let free_at = began.grants[0].slot + interval;

    let (mut first, mut second) = (one.shard("first"), other.shard("second"));
    let early = first.take(1, 1).await.first;
    let late = second.take(1, 1).await.first;
    let mut granted = second.ask(late, Duration::ZERO).await;
    // Holds unless the machine slept through two intervals.
    if granted.memory.at < free_at + interval {
        let wait = granted.wait.expect("its slot is one interval behind the other's");
        let shard = first.id.clone();
        assert_eq!(wait.reason, WaitReason::Behind { shard, ticket: early });
        granted = second.ask(late, MAX_LEAD.to_duration()).await;
    }
    let slot_of_late = granted.grants[0].slot;
    assert_eq!(slot_of_late, (free_at + interval).max(granted.memory.at));
    let granted = first.ask(early, MAX_LEAD.to_duration()).await;
    if slot_of_late == free_at + interval && granted.memory.at <= free_at {
        assert_eq!(granted.grants[0].slot, free_at);
    } else {
        let next = slot_of_late + interval;
        assert_eq!(granted.grants[0].slot, next.max(granted.memory.at));
    }
}

/// While shards work, `ticket` and `current` never decrease for any reader.
pub async fn ticket_and_current_only_rise(handles: Handles) {
    let (one, other) = opened(handles, INTERVAL).await;
    let mut shards = JoinSet::new();
    for n in 0..3 {
        shards.spawn(work(one.clone(), n));
    }
    let mut before = one.record().await;
    let mut clients = [&other, &one].into_iter().cycle();
    while !shards.is_empty() {
        let record = clients.next().unwrap().record().await;
        record.check().unwrap();
        assert!(record.ticket >= before.ticket, "{} after {}", record.ticket, before.ticket);
        assert!(record.current >= before.current, "{} after {}", record.current, before.current);
        before = record;
        if let Some(done) = shards.try_join_next() {
            done.unwrap();
        }
        tokio::time::sleep(INTERVAL).await;
    }
    assert_eq!(before.ticket, Ticket::new(3 * u64::from(JOBS)));
}

/// Takes tickets and requests slots, four at a time, until each ticket has one.
async fn work(client: Client, n: u64) -> Vec<Micros> {
    let mut shard = client.shard(&format!("worker {n}"));
    let first = shard.take(1, JOBS).await.first;
    let mut left: VecDeque<Ask> = (0..u64::from(JOBS)).map(|n| ask(first.after(n).get())).collect();
    let mut slots = Vec::new();
    while !left.is_empty() {
        let step = Step {
            lead: Micros::from_duration(INTERVAL * 5),
            ask: left.iter().take(4).copied().collect(),
            then: left.get(4).map(|ask| ask.ticket),
            ..shard.step()
        };
        let stepped = shard.send(step).await.unwrap();
        for grant in stepped.grants {
            assert_eq!(left.pop_front().map(|ask| ask.ticket), Some(grant.ticket), "in the order asked");
            slots.push(grant.slot);
        }
        let wait = stepped.wait.and_then(|wait| wait.ask_in).unwrap_or(Micros::ZERO);
        tokio::time::sleep(wait.to_duration()).await;
    }
    slots
}
