//! Deleted queues: nothing remains, and a queue in use needs force.

use std::time::Duration;

use interval_queue_contract::{Change, Command, Deletion, Micros, OnExisting, Rates, StateErrorKind};

use crate::client::{Client, Handles, kind, open, opened};

const HOUR: Duration = Duration::from_secs(3600);
const MILLISECOND: Duration = Duration::from_millis(1);

fn delete(deletion: Deletion) -> Change {
    Change::Delete(deletion)
}

async fn is_gone(clients: [&Client; 2]) {
    for client in clients {
        assert_eq!(client.read().await, None);
        if let Ok(queues) = client.state().queues().await {
            assert!(!queues.contains(client.queue()), "it lists a queue that was deleted");
        }
        let deleted = client.change(delete(Deletion::Forced)).await;
        assert_eq!(kind(deleted), StateErrorKind::NotFound);
    }
}

/// Nothing of a deleted queue remains; the reply has its settings. A new queue of that name starts
/// fresh, and other queues stay.
pub async fn a_deleted_queue_is_gone(handles: Handles) {
    let (other_queue, _) = opened(handles.clone(), HOUR).await;
    let (one, other) = opened(handles, HOUR).await;
    let (mut shard, mut gone) = (other.shard("shard"), other.shard("gone"));
    gone.take(1, 3).await;
    shard.take(1, 7).await;
    for shard in [&mut shard, &mut gone] {
        let idle = shard.step();
        shard.send(idle).await.unwrap();
    }
    one.change(Change::Pause).await.unwrap();
    let before = other.record().await.settings();
    let changed = one.change(delete(Deletion::Unused)).await.unwrap();
    assert_eq!(changed.before, Some(before));
    assert!(changed.memory.is_empty() && changed.memory.at > Micros::ZERO, "{changed:?}");
    is_gone([&one, &other]).await;
    let step = one.shard("new").step();
    assert_eq!(kind(one.apply(Command::Step(step)).await), StateErrorKind::NotFound);

    other.change(open(Some(MILLISECOND), OnExisting::Fail)).await.unwrap();
    let record = one.snapshot().await.record;
    record.check().unwrap();
    assert_eq!(record.interval(), Micros::from_duration(MILLISECOND));
    assert!(!record.paused && record.shards.is_empty(), "{record:?}");
    assert_eq!(other.shard("new").take(1, 1).await.first.get(), 1, "tickets begin again");
    other_queue.snapshot().await;
}

/// A queue with a live shard is deleted only by force; the error names the shard. Afterwards the
/// shard restores queue and tickets from its memory.
pub async fn a_queue_in_use_is_deleted_by_force_only(handles: Handles) {
    let (one, other) = opened(handles, HOUR).await;
    let mut shard = other.shard("the one that waits");
    let ticket = shard.take(1, 3).await.first;
    let before = one.record().await;
    for deletion in [Deletion::Unused, Deletion::Idle(Micros::ZERO)] {
        let error = one.change(delete(deletion)).await.unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Conflict, "{error}");
        assert!(error.to_string().contains("label of the one that waits"), "{error}");
        assert_eq!(one.record().await, before, "a refusal changed something");
    }
    one.change(delete(Deletion::Forced)).await.unwrap();
    is_gone([&one, &other]).await;
    shard.ask(ticket, Duration::ZERO).await;
    let record = one.snapshot().await.record;
    assert_eq!((record.ticket, record.settings()), (before.ticket, before.settings()));
    assert_eq!(record.shards.len(), 1);
}

/// `Deletion::Idle` rejects a recent write, a future slot and a pause.
pub async fn an_idle_queue_is_one_that_nobody_wrote_to(handles: Handles) {
    let (one, other) = opened(handles, HOUR).await;
    let refusal = async |idle: Duration| {
        let deleted = one.change(delete(Deletion::Idle(Micros::from_duration(idle)))).await;
        deleted.map_err(|error| (error.kind(), error.to_string()))
    };
    let says = |outcome: Result<_, (StateErrorKind, String)>, what: &str| {
        let (kind, text) = outcome.expect_err(what);
        assert!(kind == StateErrorKind::Conflict && text.contains(what), "{text}");
    };
    says(refusal(HOUR).await, "less than 3600s");
    other.change(Change::Pause).await.unwrap();
    says(refusal(Duration::ZERO).await, "paused");
    other.change(Change::Resume).await.unwrap();
    let mut shard = other.shard("once");
    shard.start_one().await;
    says(refusal(Duration::ZERO).await, "for another");
    other.change(Change::Reset).await.unwrap();
    other
        .change(Change::Set { rates: Some(Rates::every(Micros::new(1))), max_running: Default::default() })
        .await
        .unwrap();
    while one.snapshot().await.record.next_slot(1) > one.snapshot().await.at {
        tokio::time::sleep(MILLISECOND).await;
    }
    tokio::time::sleep(MILLISECOND).await;
    refusal(MILLISECOND).await.unwrap();
    is_gone([&one, &other]).await;
}
