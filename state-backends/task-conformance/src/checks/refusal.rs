//! A command that fails halfway changes nothing.

use interval_queue_contract::{Micros, StateErrorKind};
use interval_queue_task_contract::{Json, NewTask, OnConflict, OnFailure, Verb};

use crate::client::{Handles, behind, named, refusal, usual, with_key};

/// A failure undoes rows, payloads, edges, names and counts.
pub async fn a_refused_command_changes_nothing(handles: Handles) {
    let (one, other) = usual(handles).await;
    let holder = one.add_one(NewTask { key: with_key("k").key, ..named("n") }).await;
    let next = one.add_one(with_key("k")).await;
    let mut worker = one.worker();
    worker.tidy().await;
    let before = (other.rows().await, other.overview().await, other.stored(holder).await);
    let first = named("m");
    let batch = vec![
        first.clone(),
        behind([first.id, holder], OnFailure::Wait),
        // The replaced task passes its key on.
        NewTask { on_conflict: OnConflict::Replace, payload: Json::new("7").unwrap(), ..named("n") },
        NewTask { on_conflict: OnConflict::Refuse, ..named("m") },
    ];
    assert_eq!(refusal(one.try_add(batch, Micros::ZERO).await), StateErrorKind::Conflict);
    let after = (other.rows().await, other.overview().await, other.stored(holder).await);
    assert_eq!(after.0, before.0);
    assert_eq!(after.1.counts, before.1.counts);
    assert_eq!(after.2, before.2, "payload and edges");
    // Undone tasks are in no index: names, keys, ready tasks.
    one.add_one(named("m")).await;
    assert_eq!(one.touch(Verb::Cancel, [holder]).await, [holder]);
    let mut taken = worker.take(9).await;
    taken.retain(|&id| id != next);
    assert_eq!(taken.len(), 1, "only the new one and the next in line are ready: {taken:?}");
    assert_eq!(other.find(first.id).await, None);
}
