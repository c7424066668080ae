//! Concurrent clients.

use std::collections::BTreeSet;

use interval_queue_contract::MaxRunning;
use interval_queue_task_contract::{Added, Counted, NewTask, OnConflict, SettingsChange, State};
use tokio::task::JoinSet;

use crate::client::{Client, Handles, done, named, opened, task, usual, with_key};

/// With many concurrent workers each task is leased and completed once.
pub async fn a_task_is_leased_to_one_worker(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids: BTreeSet<_> = one
        .add((0..120).map(|n| if n % 4 == 0 { with_key("k") } else { task() }))
        .await
        .into_iter()
        .collect();
    let work = async |client: Client| {
        let mut worker = client.worker();
        let mut done_by_it = Vec::new();
        let mut idle = 0;
        while idle < 20 {
            let leased = worker.lease(3).await;
            idle = if leased.is_empty() { idle + 1 } else { 0 };
            for run in leased {
                done_by_it.push(run.task.id);
                worker.end((run.task.id, run.task.token), done()).await;
            }
        }
        done_by_it
    };
    let mut crew = JoinSet::new();
    for n in 0..6 {
        let client = [&one, &other][n % 2].clone();
        crew.spawn(async move { work(client).await });
    }
    let mut runs: Vec<_> = crew.join_all().await.into_iter().flatten().collect();
    // The last task of a key may become ready after all workers stopped.
    let mut last = one.worker();
    while let Some(run) = last.lease(1).await.pop() {
        runs.push(run.task.id);
        last.end((run.task.id, run.task.token), done()).await;
    }
    runs.sort();
    assert_eq!(runs.len(), runs.iter().collect::<BTreeSet<_>>().len(), "a task ran twice: {runs:?}");
    assert_eq!(runs.into_iter().collect::<BTreeSet<_>>(), ids);
    assert_eq!(one.counted(Counted::EverLeased).await, 120);
    assert_eq!(one.counted(Counted::Now(State::Done)).await, 120);
}

/// Limits of keys and queue hold under concurrent leases.
pub async fn limits_hold_when_many_lease_at_once(handles: Handles) {
    let settings = SettingsChange {
        max_running: MaxRunning::AtMost(7),
        key_limit: Some(2),
        ..SettingsChange::default()
    };
    let (one, other) = opened(handles, settings).await;
    one.add((0..40).map(|n| if n % 2 == 0 { with_key("k") } else { task() })).await;
    let mut crew = JoinSet::new();
    for n in 0..8 {
        let client = [&one, &other][n % 2].clone();
        crew.spawn(async move {
            let mut worker = client.worker();
            let mut leased = worker.lease(2).await;
            leased.extend(worker.lease(2).await);
            leased
        });
    }
    let leased: Vec<_> = crew.join_all().await.into_iter().flatten().collect();
    let of_key = leased.iter().filter(|run| run.task.key.is_some()).count();
    assert_eq!((leased.len(), of_key), (7, 2), "7 may run, and 2 of the key");
    let stored = one.rows().await.iter().filter(|x| x.state == State::Leased).count();
    assert_eq!(stored, 7);
}

/// Of concurrent adds of one unique name, one adds a task.
pub async fn one_of_many_has_a_name(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut crew = JoinSet::new();
    for n in 0..16 {
        let client = [&one, &other][n % 2].clone();
        let new = NewTask { on_conflict: OnConflict::Keep, ..named("n") };
        crew.spawn(async move { client.try_add(vec![new], Default::default()).await.unwrap()[0] });
    }
    let added = crew.join_all().await;
    let new: Vec<_> = added.iter().filter(|added| matches!(added, Added::New(_))).collect();
    assert_eq!(new.len(), 1, "{added:?}");
    let ids: BTreeSet<_> = added.iter().map(|added| added.id()).collect();
    assert_eq!(ids.len(), 1);
}

/// Queues are independent.
pub async fn queues_are_independent(handles: Handles) {
    let (one, _) = usual(handles.clone()).await;
    let (_, other) = usual(handles).await;
    let new = with_key("k");
    one.add_one(new.clone()).await;
    other.add_one(new).await;
    let (mut first, second) = (one.worker(), other.worker());
    let mut second = crate::client::Worker { id: first.id, ..second };
    first.run().await;
    let before = one.rows().await;
    second.run().await;
    assert_eq!(one.rows().await, before);
    assert_eq!(one.counted(Counted::EverAdded).await, 1);
}
