//! Large numbers are exact to the last digit in every store.

use interval_queue_contract::{Change, MAX_INTERVAL, Memory, Meter, Meters, Micros, Step, Ticket};

use crate::client::{Handles, ask, opened, take};

/// The longest interval and hold, the last tickets and instants of 16 digits are stored exactly.
pub async fn large_numbers_stay_exact(handles: Handles) {
    let (one, other) = opened(handles, MAX_INTERVAL.to_duration()).await;
    let started = one.shard("first").start_one().await;
    let slot = started.grants[0].slot;
    assert_eq!(other.record().await.meters.first().tat, slot + MAX_INTERVAL);
    let held = other.change(Change::Hold(MAX_INTERVAL)).await.unwrap().memory;
    assert_eq!(one.record().await.held_until, held.at + MAX_INTERVAL);

    // A lost record is restored exactly from a shard's memory.
    let far = Micros::new(8_765_432_109_876_543);
    let mut shard = one.shard("witness");
    let last = Ticket::new(Ticket::MAX.get() - 4);
    let meters = Meters::from_iter([Meter { tat: far, ..held.meters.first() }]);
    shard.memory = Memory { ticket: last, current: Ticket::new(last.get() - 2), meters, ..held };
    let take = Some(take((1 << 53) - 1, 3));
    let step = Step { take, ask: vec![ask(last.get())], sequence: (1 << 53) - 7, ..shard.step() };
    let taken = shard.send(step).await.unwrap().taken.unwrap();
    assert_eq!(taken.first, last.after(1));
    let record = other.record().await;
    assert_eq!(record.ticket, last.after(3));
    assert_eq!(record.current, Ticket::new(last.get() - 2));
    assert_eq!(record.meters.first().tat, far);
    let presence = &record.shards[&shard.id];
    assert_eq!(presence.sequence, (1 << 53) - 7);
    assert_eq!(presence.head, Some(last));
    assert_eq!(presence.last_take.map(|take| take.request), Some((1 << 53) - 1));
}
