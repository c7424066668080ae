//! A check of counts after rows were removed by hand with the store's `remove`.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a check fails by panicking")]

use interval_queue_contract::QueueName;
use interval_queue_task_contract::{
    Change, Command, Corrected, Counted, NewTask, Order, Recounted, Reply, Selector, State, TaskId,
};

use crate::{
    Handles,
    client::{Client, kind, task, usual, with_key},
};

/// Wrong counts are detected and recounted. Removed tasks block no others.
pub async fn removed_rows_are_counted(handles: Handles, remove: impl AsyncFnOnce(&QueueName, &[TaskId])) {
    let (one, other) = usual(handles).await;
    let mut worker = one.worker();
    worker.beat().await;
    let mut removed = one.add([task(), task(), task(), task()]).await;
    let mut left = one.add([task(), task(), task()]).await;
    removed.push(one.add_one(with_key("k")).await);
    left.push(one.add_one(with_key("k")).await);
    removed.push(one.add_one(NewTask { kind: kind("mail"), ..task() }).await);
    worker.tidy().await;
    assert_eq!(one.states(&left).await, [State::Ready, State::Ready, State::Ready, State::Blocked]);
    assert_eq!((are_wrong(&one).await, recount(&other).await), (false, Recounted::default()));

    remove(one.queue(), &removed).await;
    assert!(are_wrong(&other).await);
    assert!(one.overview().await.miscounted);
    assert_eq!(one.counted(Counted::Now(State::Ready)).await, 9);
    let corrected =
        |of: &str, before, counted| Corrected { kind: kind(of), state: State::Ready, before, counted };
    let recounted = recount(&other).await;
    assert_eq!(recounted.corrected, [corrected("default", 8, 3), corrected("mail", 1, 0)]);
    assert_eq!((are_wrong(&one).await, one.overview().await.miscounted), (false, false));
    assert_eq!(recount(&one).await, Recounted::default());

    worker.tidy().await;
    for &id in &left {
        assert_eq!(worker.run().await, id);
    }
    assert_eq!((are_wrong(&one).await, recount(&one).await), (false, Recounted::default()));
    let now = [State::Ready, State::Blocked, State::Leased, State::Done].map(Counted::Now);
    let mut counts = Vec::new();
    for counted in now {
        counts.push(one.counted(counted).await);
    }
    assert_eq!(counts, [0, 0, 0, 4]);
}

/// Whether lists of tasks contradict the counts.
async fn are_wrong(client: &Client) -> bool {
    let of_state = client.page(Selector::states([State::Ready]), Order::Oldest, 100).await;
    let all = client.page(Selector::default(), Order::Oldest, 100).await;
    assert_eq!(of_state.miscounted, all.miscounted);
    let of_others = Selector::ids([crate::client::id()]);
    assert!(!client.page(of_others, Order::Oldest, 100).await.miscounted);
    all.miscounted
}

async fn recount(client: &Client) -> Recounted {
    let mut all = Recounted::default();
    loop {
        match client.apply(Command::Change(Change::Recount)).await.unwrap() {
            Reply::Recounted(some) => {
                all.corrected.extend(some.corrected);
                all.dropped += some.dropped;
                if !some.more {
                    return all;
                }
            }
            other => panic!("a recount was answered by {other:?}"),
        }
    }
}
