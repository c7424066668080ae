//! Adding tasks: stored fields and rejections.

use interval_queue_contract::{Micros, StateErrorKind};
use interval_queue_task_contract::{
    Added, Command, Counted, Json, LATE_ADD, NewTask, OnFailure, SettingsChange, State, Verb,
};

use crate::{
    client::{Handles, behind, opened, refusal, task, unopened, usual},
    hand,
};

/// An add creates the queue; a read does not.
pub async fn the_first_add_makes_the_queue(handles: Handles) {
    let (one, other) = unopened(handles);
    let read = other
        .apply(interval_queue_task_contract::Command::Read(interval_queue_task_contract::Read::Overview));
    assert_eq!(refusal(read.await), StateErrorKind::NotFound);
    let id = one.add_one(task()).await;
    assert_eq!(other.row(id).await.id, id);
    assert!(other.store().queues().await.unwrap().contains(other.queue()), "the queue is not listed");
}

/// A flow of thousands of tasks is one command, and a repeat is recognized. Takes five seconds on a
/// store that writes a file for each task.
pub async fn a_large_flow_is_added_by_one_command(handles: Handles) {
    let (one, other) = usual(handles).await;
    let Command::Add(flow) = hand::flow(4_000) else { panic!("no add") };
    let added = one.try_add(flow.tasks.to_vec(), Micros::ZERO).await.unwrap();
    assert!(added.iter().zip(&*flow.tasks).all(|(added, new)| *added == Added::New(new.id)));
    let again = other.try_add(flow.tasks.to_vec(), Micros::ZERO).await.unwrap();
    assert!(again.iter().zip(&*flow.tasks).all(|(added, new)| *added == Added::Again(new.id)));
    let last = NewTask { edges: Vec::new(), ..flow.tasks[3_999].clone() };
    let named = other.try_add(vec![NewTask { id: task().id, ..last }], Micros::ZERO).await.unwrap();
    assert_eq!(named, [Added::Kept(flow.tasks[3_999].id)]);
}

/// Existing ids stay unchanged.
pub async fn a_repeated_add_adds_nothing(handles: Handles) {
    let (one, other) = usual(handles).await;
    let batch = vec![task(), task()];
    let ids = one.add(batch.clone()).await;
    let mut worker = one.worker();
    let run = worker.run().await;
    let again = batch.iter().map(|new| NewTask { payload: Json::new("7").unwrap(), ..new.clone() }).collect();
    let added = other.try_add(again, LATE_ADD * 2).await.unwrap();
    assert_eq!(added, [Added::Again(ids[0]), Added::Again(ids[1])]);
    assert_eq!((run, one.state(ids[0]).await), (ids[0], State::Done));
    assert_eq!(one.stored(ids[1]).await.payload, Some(Json::default()));
    assert_eq!(one.counted(Counted::EverAdded).await, 2);
}

/// One rejected task rejects the batch.
pub async fn a_batch_is_added_whole_or_not_at_all(handles: Handles) {
    let (one, other) = usual(handles).await;
    let stranger = task().id;
    let batch = vec![task(), task(), behind([stranger], OnFailure::Cancel)];
    assert_eq!(refusal(one.try_add(batch.clone(), Micros::ZERO).await), StateErrorKind::NotFound);
    assert_eq!(other.rows().await, []);
    assert_eq!(other.overview().await.counts, []);
    let id = batch[0].id;
    let twice = vec![batch[0].clone(), batch[0].clone()];
    assert_eq!(one.try_add(twice, Micros::ZERO).await.unwrap(), [Added::New(id), Added::Again(id)]);
    one.add_one(batch[1].clone()).await;
    assert_eq!(other.rows().await.len(), 2);
}

/// New ids first sent long ago are rejected: their tasks may have run and been deleted.
pub async fn a_late_add_is_refused(handles: Handles) {
    let (one, other) = usual(handles).await;
    let late = LATE_ADD + Micros::new(1);
    assert_eq!(refusal(one.try_add(vec![task()], late).await), StateErrorKind::Conflict);
    assert_eq!(other.rows().await, []);
    one.try_add(vec![task()], LATE_ADD).await.unwrap();
    assert_eq!(other.rows().await.len(), 1);
}

/// Upstreams must be in the batch or stored, not purged.
pub async fn edges_name_tasks_that_are_there(handles: Handles) {
    let (one, other) = usual(handles).await;
    let up = one.add_one(task()).await;
    let mut worker = other.worker();
    worker.run().await;
    let down = one.add_one(behind([up], OnFailure::Cancel)).await;
    assert_eq!(worker.run().await, down);
    let gone = one.add_one(task()).await;
    worker.run().await;
    assert_eq!(one.touch(Verb::Purge, [gone]).await, [gone]);
    let outcome = other.try_add(vec![behind([gone], OnFailure::Run)], Micros::ZERO).await;
    assert_eq!(refusal(outcome), StateErrorKind::NotFound);
}

/// A payload above the queue's maximum is rejected.
pub async fn too_large_a_payload_is_refused(handles: Handles) {
    let settings = SettingsChange { max_payload: Some(10), ..SettingsChange::default() };
    let (one, other) = opened(handles, settings).await;
    let fits = NewTask { payload: Json::new("\"12345678\"").unwrap(), ..task() };
    let large = NewTask { payload: Json::new("\"123456789\"").unwrap(), ..task() };
    let outcome = one.try_add(vec![task(), large], Micros::ZERO).await;
    assert_eq!(refusal(outcome), StateErrorKind::Invalid);
    let id = one.add_one(fits.clone()).await;
    assert_eq!(other.stored(id).await.payload, Some(fits.payload));
    assert_eq!(other.rows().await.len(), 1);
}
