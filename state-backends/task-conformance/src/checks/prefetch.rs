//! Tasks leased ahead of free permits.

use interval_queue_contract::{MaxRunning, Micros};
use interval_queue_task_contract::{
    AttemptEnd, Change, NewTask, Outcome, Progress, SettingsChange, State, Step, Stepped, TaskId,
};

use super::fence::outlive;
use crate::client::{Client, Handles, SHORT, Worker, attempts, done, key, kind, task, usual};

/// Leases `want` tasks for free permits and up to `ahead` beyond.
async fn lease(worker: &mut Worker, want: u32, ahead: u32) -> Stepped {
    let step = Step { want, ahead, ..worker.step() };
    worker.send(step).await
}

fn ids(stepped: &Stepped) -> Vec<TaskId> {
    stepped.leased.iter().map(|leased| leased.task.id).collect()
}

async fn prefetched(client: &Client, ids: &[TaskId]) -> Vec<bool> {
    let mut flags = Vec::new();
    for id in ids {
        flags.push(client.row(*id).await.prefetched);
    }
    flags
}

/// Tasks beyond `want` are leased as prefetched, until progress shows that they have begun.
pub async fn tasks_are_leased_ahead_of_permits(handles: Handles) {
    let (one, other) = usual(handles).await;
    let added = one.add([(); 4].map(|()| task())).await;
    let mut worker = other.worker();
    let stepped = lease(&mut worker, 1, 2).await;
    assert_eq!((ids(&stepped), stepped.may_prefetch), (added[..3].to_vec(), true));
    let flags: Vec<_> = stepped.leased.iter().map(|leased| leased.task.prefetched).collect();
    assert_eq!(flags, [false, true, true]);
    assert_eq!(prefetched(&one, &added).await, [false, true, true, false]);
    let run = &stepped.leased[1].task;
    let progress = vec![(run.id, run.token, Progress { done: 1, ..Progress::default() })];
    let step = Step { progress, ..worker.step() };
    worker.send(step).await;
    assert_eq!(prefetched(&one, &added).await, [false, false, true, false]);
    worker.end((run.id, run.token), done()).await;
    assert_eq!(one.state(added[1]).await, State::Done);
}

/// A task that must not wait in hand ends the prefetch, so that none passes it.
pub async fn some_tasks_are_not_prefetched(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut worker = other.worker();
    let keyed = NewTask { key: Some(key("a")), ..task() };
    let once = NewTask { policy: attempts(1), ..task() };
    for new in [keyed, once] {
        let added = one.add([task(), new, task()]).await;
        assert_eq!(ids(&lease(&mut worker, 0, 3).await), added[..1], "it stands in the way");
        assert_eq!(ids(&lease(&mut worker, 1, 3).await), added[1..], "it gets a permit, and the next waits");
    }
    for outcome in [Outcome::Retry(Micros::ZERO, String::new()), Outcome::Exchanged, Outcome::Released] {
        let is_returned = outcome == Outcome::Released;
        let id = one.add([NewTask { policy: attempts(9), ..task() }]).await[0];
        let run = worker.one().await;
        assert_eq!(run.0, id);
        worker.end(run, outcome).await;
        worker.tidy().await;
        let again = ids(&lease(&mut worker, 0, 1).await);
        assert_eq!(again.is_empty(), is_returned, "{:?}", one.row(id).await);
    }
}

/// Nothing is prefetched while something is paused, or under a limit of the queue.
pub async fn nothing_is_prefetched_under_a_pause_or_a_limit(handles: Handles) {
    let (one, other) = usual(handles).await;
    one.add([(); 3].map(|()| task())).await;
    let mut worker = other.worker_of(&["default", "other"]);
    let limit = |max_running| Change::Set(SettingsChange { max_running, ..SettingsChange::default() });
    let changes = [
        (Change::Pause, Change::Resume),
        (Change::Kind(kind("other"), true), Change::Kind(kind("other"), false)),
        (limit(MaxRunning::AtMost(9)), limit(MaxRunning::Unlimited)),
    ];
    for (change, back) in changes {
        one.change(change).await;
        let stepped = lease(&mut worker, 0, 1).await;
        assert_eq!((ids(&stepped), stepped.may_prefetch), (vec![], false));
        one.change(back).await;
        let stepped = lease(&mut worker, 0, 1).await;
        assert_eq!((ids(&stepped).len(), stepped.may_prefetch), (1, true));
    }
}

/// A prefetched task of a dead worker has not failed, and gets a permit next time.
pub async fn a_prefetched_task_of_a_dead_worker_has_not_failed(handles: Handles) {
    let (one, other) = usual(handles).await;
    let added = one.add([1, 2].map(|_| NewTask { policy: attempts(2), ..task() })).await;
    let mut dead = one.worker().with_lease(SHORT);
    assert_eq!(ids(&lease(&mut dead, 1, 1).await), added);
    outlive(&other).await;
    let (died, given_back) = (one.row(added[0]).await, one.row(added[1]).await);
    assert_eq!((died.failures, died.returns, died.history[0].end), (1, 0, AttemptEnd::Died));
    assert_eq!(
        (given_back.failures, given_back.returns, given_back.history[0].end),
        (0, 1, AttemptEnd::Lost)
    );
    let mut heir = other.worker();
    assert_eq!(ids(&lease(&mut heir, 0, 2).await), []);
    assert_eq!(ids(&lease(&mut heir, 2, 0).await), added);
}
