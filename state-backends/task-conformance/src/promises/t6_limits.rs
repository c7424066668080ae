//! T6: limits hold, counted by leases, and a command that frees a permit passes it on.

use std::time::Duration;

use interval_queue_contract::MaxRunning;
use interval_queue_task_contract::{Change, NewTask, SettingsChange, State};

use crate::{
    Handles,
    client::{SHORT, attempts, done, usual, with_key},
};

pub async fn a_dead_worker_leaks_no_place(handles: Handles) {
    let queue = usual(handles).await.0;
    let limit = SettingsChange { max_running: MaxRunning::AtMost(1), ..SettingsChange::default() };
    queue.change(Change::Set(limit)).await;
    let ids = queue.add([(); 2].map(|()| NewTask { policy: attempts(1), ..with_key("k") })).await;
    assert_eq!(queue.worker().with_lease(SHORT).take(9).await, [ids[0]]);
    let mut heir = queue.worker().with_lease(SHORT);
    for _ in 0..3 {
        assert_eq!(heir.take(9).await, [], "the lease has not ended");
        queue.pass(Duration::from_millis(250)).await;
    }
    queue.live(&mut heir, Duration::from_secs(1)).await;
    assert_eq!(heir.take(9).await, [ids[1]]);
}

pub async fn the_next_in_line_is_ready_in_the_same_command(handles: Handles) {
    let queue = usual(handles).await.0;
    let ids = queue.add([with_key("k"), with_key("k")]).await;
    let mut worker = queue.worker();
    let run = worker.one().await;
    assert_eq!(queue.state(ids[1]).await, State::Blocked);
    worker.end(run, done()).await;
    assert_eq!(queue.state(ids[1]).await, State::Ready);
}
