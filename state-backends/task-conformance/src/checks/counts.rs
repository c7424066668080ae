//! Counters equal rows.

use std::collections::BTreeMap;

use interval_queue_task_contract::{Counted, Kind, NewTask, OnFailure, Outcome, State, Verb};

use crate::client::{Client, Handles, attempts, behind, done, in_seconds, kind, task, usual, with_key};

async fn compare(client: &Client) {
    let mut there: BTreeMap<(Kind, Counted), u64> = BTreeMap::new();
    for x in client.rows().await {
        *there.entry((x.kind, Counted::Now(x.state))).or_default() += 1;
    }
    let counts = client.overview().await.counts.into_iter();
    let now = counts.filter(|(_, counted, _)| matches!(counted, Counted::Now(_)));
    let reported: BTreeMap<_, _> = now.map(|(kind, counted, n)| ((kind, counted), n)).collect();
    assert_eq!(reported, there);
}

/// Counters equal rows after every command, also a rejected one.
pub async fn counts_are_exact(handles: Handles) {
    let (one, other) = usual(handles).await;
    let failing = || NewTask { policy: attempts(2), kind: kind("ä"), ..task() };
    let mut batch = vec![task(), task(), with_key("k"), with_key("k"), failing(), failing()];
    batch.push(NewTask { not_before: in_seconds(1_000), ..task() });
    batch.push(behind([batch[0].id, batch[4].id], OnFailure::Cancel));
    let ids = one.add(batch).await;
    compare(&other).await;
    let mut worker = other.worker_of(&["ä", "default"]);
    let runs = worker.lease(9).await;
    compare(&one).await;
    for (n, leased) in runs.iter().enumerate() {
        let run = (leased.task.id, leased.task.token);
        let outcome = match n {
            0 => done(),
            1 => Outcome::Released,
            2 => Outcome::Failed("no".into()),
            3 => Outcome::Error("no".into()),
            _ => Outcome::Exchanged,
        };
        worker.end(run, outcome).await;
        compare(&one).await;
    }
    for verb in [Verb::Release, Verb::Cancel, Verb::Retry, Verb::Cancel, Verb::Purge] {
        one.touch(verb, ids.clone()).await;
        compare(&other).await;
        worker.tidy().await;
        compare(&other).await;
    }
    let ever = one.counted(Counted::EverAdded).await;
    let refused = vec![task(), behind([task().id], OnFailure::Run)];
    one.try_add(refused, Default::default()).await.unwrap_err();
    compare(&other).await;
    assert_eq!((ever, one.counted(Counted::EverAdded).await), (8, 8));
    assert_eq!(one.counted(Counted::EverLeased).await, runs.len() as u64);
    assert_eq!(one.counted(Counted::EverDone).await, 1);
    assert!(one.counted(Counted::Now(State::Purged)).await > 0);
}
