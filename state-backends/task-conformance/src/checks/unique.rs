//! Names that at most one live task has.

use interval_queue_contract::{Micros, StateErrorKind};
use interval_queue_task_contract::{
    Added, Json, NewTask, OnConflict, OnFailure, Selector, State, Unique, Until, Verb,
};

use crate::client::{Handles, attempts, behind, done, key, named, refusal, seconds, usual};

/// The second task of a name is kept out until the first has ended, whatever waits for it follows the first.
pub async fn a_unique_name_keeps_others_out(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut worker = one.worker();
    let first = one.add_one(named("n")).await;
    let second = named("n");
    let down = behind([second.id], OnFailure::Cancel);
    let added = other.try_add(vec![second, down.clone()], Micros::ZERO).await.unwrap();
    assert_eq!(added, [Added::Kept(first), Added::New(down.id)]);
    let run = worker.one().await;
    assert_eq!(other.try_add(vec![named("n")], Micros::ZERO).await.unwrap(), [Added::Kept(first)]);
    worker.end(run, done()).await;
    assert_eq!(worker.run().await, down.id);
    one.add_one(named("n")).await;
}

/// A task whose name is taken refuses the whole `add`, if it says so.
pub async fn a_unique_name_refuses_others(handles: Handles) {
    let (one, other) = usual(handles).await;
    one.add_one(named("n")).await;
    let second = NewTask { on_conflict: OnConflict::Refuse, ..named("n") };
    let outcome = other.try_add(vec![named("m"), second], Micros::ZERO).await;
    assert_eq!(refusal(outcome), StateErrorKind::Conflict);
    assert_eq!(one.rows().await.len(), 1);
}

/// A task that is not leased becomes the new one, under its id and in its place. The id of the new one is remembered.
pub async fn a_unique_task_is_replaced_in_place(handles: Handles) {
    let (one, other) = usual(handles).await;
    let first = one.add_one(NewTask { priority: 1, policy: attempts(1), ..named("n") }).await;
    let before = one.row(first).await;
    let payload = Json::new("\"new\"").unwrap();
    let second = NewTask { payload: payload.clone(), on_conflict: OnConflict::Replace, ..named("n") };
    let added = other.try_add(vec![second.clone()], Micros::ZERO).await.unwrap();
    assert_eq!(added, [Added::Replaced(first)]);
    let stored = one.stored(first).await;
    assert_eq!((stored.payload, stored.task.priority, stored.task.policy), (Some(payload.clone()), 0, None));
    assert_eq!((stored.task.added, stored.task.id), (before.added, first));
    let mut worker = one.worker();
    let leased = worker.lease(9).await;
    assert_eq!((leased.len(), &leased[0].payload), (1, &payload));
    // While it runs it stands.
    let third = NewTask { on_conflict: OnConflict::Replace, ..named("n") };
    assert_eq!(other.try_add(vec![third], Micros::ZERO).await.unwrap(), [Added::Kept(first)]);
    worker.end((first, leased[0].task.token), done()).await;
    let again = other.try_add(vec![second.clone()], seconds(1)).await.unwrap();
    assert_eq!(again, [Added::Again(second.id)], "its work was done: it must not be done twice");
    assert_eq!(worker.take(9).await, []);
}

/// A name until leased makes exactly one more run of all that comes during a run, whose retry does not take it back.
pub async fn a_name_until_leased_makes_one_more_run(handles: Handles) {
    let (one, other) = usual(handles).await;
    let until_leased =
        || NewTask { unique: Some(Unique { name: key("n"), until: Until::Leased }), ..named("n") };
    let first = one.add_one(until_leased()).await;
    let mut worker = one.worker();
    let run = worker.one().await;
    let second = other.add_one(until_leased()).await;
    assert_eq!(other.try_add(vec![until_leased()], Micros::ZERO).await.unwrap(), [Added::Kept(second)]);
    worker.end(run, interval_queue_task_contract::Outcome::Released).await;
    let rows = one.rows().await;
    let holds: Vec<_> = rows.iter().filter(|x| x.holds_name).map(|x| x.id).collect();
    assert_eq!((run.0, holds), (first, vec![second]));
}

/// An ended task that is retried while another one has its name runs nameless.
pub async fn a_retried_task_finds_its_name_taken(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut worker = one.worker();
    let first = one.add_one(named("n")).await;
    worker.run().await;
    let second = other.add_one(named("n")).await;
    assert_eq!(one.touch(Verb::Retry, [first]).await, [first]);
    assert!(!one.row(first).await.holds_name && one.row(second).await.holds_name);
    let by_name = Selector { unique: Some(key("n")), ..Selector::states([State::Ready]) };
    assert_eq!(other.page(by_name, None, 9).await.tasks.len(), 2);
    worker.run().await;
    worker.run().await;
    one.touch(Verb::Retry, [first]).await;
    assert!(one.row(first).await.holds_name, "the name is free again");
}
