//! Watchers are notified of changes. A store that returns `Unsupported` passes.

use std::{future::poll_fn, time::Duration};

use interval_queue_contract::{
    Change, Changes, Deletion, MaxRunning, Micros, OnExisting, Rates, StateErrorKind,
};

use crate::client::{Client, Handles, open, opened};

const MINUTE: Duration = Duration::from_secs(60);
/// Long enough for most pending notifications.
const QUIET_TIME: Duration = Duration::from_millis(200);

/// Starts to watch. `None`: the store does not support it.
async fn watch(client: &Client) -> Option<Changes> {
    match client.state().changes(client.queue()).await {
        Ok(changes) => Some(changes),
        Err(error) => {
            assert_eq!(error.kind(), StateErrorKind::Unsupported, "{error}");
            None
        }
    }
}

async fn next(changes: &mut Changes) {
    poll_fn(|context| changes.as_mut().poll_next(context)).await.expect("the stream ended");
}

/// Consumes and counts the pending items.
async fn drain(changes: &mut Changes) -> usize {
    let mut count = 0;
    while tokio::time::timeout(QUIET_TIME, next(changes)).await.is_ok() {
        count += 1;
        assert!(count < 1_000, "items come without end");
    }
    count
}

/// Every kind of change through one handle notifies all watchers of both.
pub async fn changes_are_notified_to_all_watchers(handles: Handles) {
    let (one, other) = opened(handles, MINUTE).await;
    let (Some(mut near), Some(mut far), Some(mut second)) =
        (watch(&one).await, watch(&other).await, watch(&other).await)
    else {
        return;
    };
    let rates = Some(Rates::every(Micros::from_duration(MINUTE * 2)));
    for change in [
        Change::Pause,
        Change::Resume,
        Change::Hold(Micros::from_duration(MINUTE)),
        Change::Set { rates, max_running: MaxRunning::AtMost(7) },
        open(Some(MINUTE), OnExisting::Replace),
        Change::Reset,
        Change::Delete(Deletion::Unused),
    ] {
        for changes in [&mut near, &mut far, &mut second] {
            drain(changes).await;
        }
        one.change(change).await.unwrap();
        for (who, changes) in [("near", &mut near), ("far", &mut far), ("second", &mut second)] {
            let told = tokio::time::timeout(MINUTE / 3, next(changes)).await;
            assert!(told.is_ok(), "{change:?} was not told to the {who} one");
        }
    }
}

/// A change while a watch starts is notified or visible to a later read.
pub async fn no_change_is_missed_when_watching_begins(handles: Handles) {
    let (one, other) = opened(handles, MINUTE).await;
    for round in 0..20_u64 {
        other.change(Change::Pause).await.unwrap();
        let resumed = {
            let one = one.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_micros(100 * round)).await;
                one.change(Change::Resume).await.unwrap();
            })
        };
        let Some(mut changes) = watch(&other).await else {
            return;
        };
        while other.record().await.paused {
            let told = tokio::time::timeout(MINUTE / 3, next(&mut changes)).await;
            assert!(told.is_ok(), "the end of the pause in round {round} was missed");
        }
        resumed.await.unwrap();
    }
}

/// Steps and reads do not notify: watchers react with steps and reads, which would loop.
pub async fn steps_and_reads_are_not_notified(handles: Handles) {
    const TIMES: u64 = 20;
    let (one, other) = opened(handles, MINUTE).await;
    let Some(mut changes) = watch(&one).await else {
        return;
    };
    one.change(Change::Pause).await.unwrap();
    drain(&mut changes).await;
    let (mut near, mut far) = (one.shard("near"), other.shard("far"));
    let mut told = 0;
    for request in 1..=TIMES {
        near.take(request, 1).await;
        far.take(request, 1).await;
        one.snapshot().await;
        told += usize::from(tokio::time::timeout(QUIET_TIME / 10, next(&mut changes)).await.is_ok());
    }
    told += drain(&mut changes).await;
    assert!(told < TIMES as usize / 2, "{told} items for {TIMES} rounds of steps");
}

/// After a dropped watch the store works and can be watched again.
pub async fn dropped_watching_leaves_a_working_state(handles: Handles) {
    let (one, other) = opened(handles, MINUTE).await;
    for round in 0..20_u64 {
        let patience = Duration::from_micros(200 * round);
        let _ = tokio::time::timeout(patience, one.state().changes(one.queue())).await;
        other.change(Change::Pause).await.unwrap();
        let Some(mut changes) = watch(&one).await else {
            return;
        };
        other.change(Change::Resume).await.unwrap();
        let told = tokio::time::timeout(MINUTE / 3, next(&mut changes)).await;
        assert!(told.is_ok(), "not told in round {round}");
    }
}
