//! Unique names: at most one live task each.

use interval_queue_contract::{Micros, StateErrorKind};
use interval_queue_task_contract::{
    Added, ChangeTasks, Json, NewTask, OnConflict, OnFailure, PolicyOverride, Selector, State, Unique, Until,
    Verb,
};

use crate::client::{Handles, attempts, behind, done, key, named, refusal, seconds, touch, usual};

/// A second task of a name is not added until the first ends; its downstreams follow the first.
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

/// A conflict rejects the whole `add` if the task demands it.
pub async fn a_unique_name_refuses_others(handles: Handles) {
    let (one, other) = usual(handles).await;
    one.add_one(named("n")).await;
    let second = NewTask { on_conflict: OnConflict::Refuse, ..named("n") };
    let outcome = other.try_add(vec![named("m"), second], Micros::ZERO).await;
    assert_eq!(refusal(outcome), StateErrorKind::Conflict);
    assert_eq!(one.rows().await.len(), 1);
}

/// An unleased task is replaced, keeping id and order. The new id is remembered.
pub async fn a_unique_task_is_replaced_in_place(handles: Handles) {
    let (one, other) = usual(handles).await;
    let first = one.add_one(NewTask { priority: 1, policy: attempts(1), ..named("n") }).await;
    let before = one.row(first).await;
    let payload = Json::new("\"new\"").unwrap();
    let second = NewTask { payload: payload.clone(), on_conflict: OnConflict::Replace, ..named("n") };
    let added = other.try_add(vec![second.clone()], Micros::ZERO).await.unwrap();
    assert_eq!(added, [Added::Replaced(first)]);
    let stored = one.stored(first).await;
    assert_eq!(
        (stored.payload, stored.task.priority, stored.task.policy),
        (Some(payload.clone()), 0, PolicyOverride::default())
    );
    assert_eq!((stored.task.added, stored.task.id), (before.added, first));
    let mut worker = one.worker();
    let leased = worker.lease(9).await;
    assert_eq!((leased.len(), &leased[0].payload), (1, &payload));
    // A running task is not replaced.
    let third = NewTask { on_conflict: OnConflict::Replace, ..named("n") };
    assert_eq!(other.try_add(vec![third], Micros::ZERO).await.unwrap(), [Added::Kept(first)]);
    worker.end((first, leased[0].task.token), done()).await;
    let again = other.try_add(vec![second.clone()], seconds(1)).await.unwrap();
    assert_eq!(again, [Added::Again(second.id)], "its work was done: it must not be done twice");
    assert_eq!(worker.take(9).await, []);
}

/// A name until leased admits one more run for all adds during a run, whose retry does not reclaim
/// the name.
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

/// An ended task whose name is taken is not retried, nor in a dry run.
pub async fn a_retried_task_finds_its_name_taken(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut worker = one.worker();
    let first = one.add_one(named("n")).await;
    worker.run().await;
    let second = other.add_one(named("n")).await;
    let of_other_name = other.add_one(named("m")).await;
    one.touch(Verb::Cancel, [of_other_name]).await;
    for dry_run in [true, false] {
        let retry = touch(Verb::Retry, Selector::ids([first, of_other_name]));
        let touched = one.try_touch(ChangeTasks { dry_run, ..retry }).await.unwrap();
        assert_eq!((touched.ids, touched.kept), (vec![of_other_name], vec![]));
        assert_eq!(touched.taken, [(first, second)]);
    }
    assert_eq!(one.states(&[first, second]).await, [State::Done, State::Ready]);
    one.touch(Verb::Cancel, [second, of_other_name]).await;
    // Of several ended tasks, one gets the name.
    for dry_run in [true, false] {
        let retry = touch(Verb::Retry, Selector::ids([first, second]));
        let touched = one.try_touch(ChangeTasks { dry_run, ..retry }).await.unwrap();
        assert_eq!((touched.ids, touched.taken), (vec![first], vec![(second, first)]));
    }
    assert!(one.row(first).await.holds_name, "the name was free again");
    assert_eq!(worker.take(9).await, [first]);
}
