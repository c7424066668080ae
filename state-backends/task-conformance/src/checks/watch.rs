//! Notifications.

use std::time::Duration;

use futures::{FutureExt, StreamExt};
use interval_queue_contract::{Changes, MaxRunning, StateErrorKind};
use interval_queue_task_contract::{Change, SettingsChange, Verb};

use crate::client::{Client, Handles, done, kind, opened, task, usual, with_key};

/// Starts to watch. `None`: the store does not support it.
async fn watch(client: &Client) -> Option<Changes> {
    match client.store().changes(client.queue()).await {
        Ok(changes) => Some(changes),
        Err(error) if error.kind() == StateErrorKind::Unsupported => None,
        Err(error) => panic!("it cannot be watched: {error}"),
    }
}

/// Consumes pending notifications, which changes may share and which may be late.
pub(crate) async fn await_quiescence(changes: &mut Changes) {
    while tokio::time::timeout(Duration::from_millis(300), changes.next())
        .await
        .is_ok_and(|notify| notify.is_some())
    {}
}

pub(crate) async fn notified(changes: &mut Changes, by: &str) {
    let notify = tokio::time::timeout(Duration::from_secs(30), changes.next()).await;
    assert_eq!(notify, Ok(Some(())), "nobody was notified by {by}");
    await_quiescence(changes).await;
}

/// Watchers are notified of tasks to lease, runs to stop, and changed settings.
pub async fn changes_notify_watchers(handles: Handles) {
    let settings = SettingsChange { max_running: MaxRunning::AtMost(2), ..SettingsChange::default() };
    let (one, other) = opened(handles, settings).await;
    let Some(mut changes) = watch(&other).await else { return };
    await_quiescence(&mut changes).await;
    let ids = one.add([task(), with_key("k"), with_key("k")]).await;
    notified(&mut changes, "an add").await;
    let mut worker = one.worker();
    let runs = worker.lease(9).await;
    await_quiescence(&mut changes).await;
    worker.end((ids[1], runs[1].task.token), done()).await;
    notified(&mut changes, "a key that got free, and a place under the limit").await;
    one.touch(Verb::Cancel, [ids[0]]).await;
    notified(&mut changes, "a cancellation of what runs").await;
    one.change(Change::Pause).await;
    one.change(Change::Resume).await;
    notified(&mut changes, "the end of a pause").await;
    one.change(Change::Set(SettingsChange { key_limit: Some(3), ..SettingsChange::default() })).await;
    notified(&mut changes, "settings").await;
}

/// A step that makes tasks of other kinds ready notifies their workers.
pub async fn tasks_beyond_a_workers_room_notify_others(handles: Handles) {
    let (one, other) = usual(handles).await;
    let Some(mut changes) = watch(&other).await else { return };
    let mut served = other.worker_of(&["other"]);
    served.tidy().await;
    let new = interval_queue_task_contract::NewTask { kind: kind("other"), ..with_key("k") };
    one.add_one(new).await;
    await_quiescence(&mut changes).await;
    let mut worker = one.worker();
    let step = interval_queue_task_contract::Step { want: 9, ..worker.step() };
    assert_eq!(worker.send(step).await.leased, []);
    notified(&mut changes, "a task that was let into its line").await;
    assert_eq!(served.take(9).await.len(), 1);
}

/// A heartbeat, a read and a rejected command do not notify.
pub async fn a_heartbeat_notifies_nobody(handles: Handles) {
    let (one, other) = usual(handles).await;
    one.add([task(), with_key("k")]).await;
    let mut worker = one.worker();
    worker.lease(1).await;
    worker.tidy().await;
    let Some(mut changes) = watch(&other).await else { return };
    await_quiescence(&mut changes).await;
    for _ in 0..5 {
        worker.beat().await;
        one.overview().await;
        one.rows().await;
        let stranger = crate::client::behind([task().id], interval_queue_task_contract::OnFailure::Run);
        one.try_add(vec![task(), stranger], Default::default()).await.unwrap_err();
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(changes.next().now_or_never(), None, "a heartbeat has notified");
}
