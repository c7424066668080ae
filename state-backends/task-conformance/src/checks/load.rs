//! Free capacity of a worker: weights, and priorities under load.

use interval_queue_task_contract::{
    ABOVE_ALL, Completion, FreeCapacity, NewTask, Read, Reply, State, Step, TaskId, Why,
};

use crate::client::{Handles, Worker, done, kind, task, usual};

fn heavy(weight: u32) -> NewTask {
    NewTask { weight, ..task() }
}

async fn given(worker: &mut Worker, step: Step) -> Vec<TaskId> {
    worker.send(step).await.leased.iter().map(|leased| leased.task.id).collect()
}

fn free(weight: u32, empty: bool) -> Option<FreeCapacity> {
    Some(FreeCapacity { weight, empty })
}

/// Tasks are leased in order while their weights fit. None passes a heavier one.
pub async fn a_worker_gets_what_fits_in_its_order(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = one.add([2, 1, 3, 1].map(heavy)).await;
    let mut worker = other.worker();
    let step = Step { want: 9, free_capacity: free(4, true), ..worker.step() };
    assert_eq!(given(&mut worker, step).await, ids[..2]);
    let step = Step { want: 9, free_capacity: free(1, false), ..worker.step() };
    assert_eq!(given(&mut worker, step).await, []);
    let token = one.row(ids[0]).await.token;
    worker.end((ids[0], token), done()).await;
    let step = Step { want: 9, free_capacity: free(3, false), ..worker.step() };
    assert_eq!(given(&mut worker, step).await, ids[2..3], "and then nothing is left");
    let mut without = one.worker();
    assert_eq!(without.take(9).await, ids[3..], "one without a capacity takes any");
}

/// A task above the whole capacity runs alone.
pub async fn too_heavy_a_task_runs_alone(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = one.add([heavy(9), heavy(1)]).await;
    let mut worker = other.worker();
    let step = Step { want: 9, free_capacity: free(4, false), ..worker.step() };
    assert_eq!(given(&mut worker, step).await, []);
    let step = Step { want: 9, free_capacity: free(4, true), ..worker.step() };
    assert_eq!(given(&mut worker, step).await, ids[..1]);
    assert_eq!(one.state(ids[1]).await, State::Ready);
}

/// A task's `why` is load while all live workers of its kind are under load.
pub async fn a_task_waiting_for_load_says_why(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = one.add([1, 0, -1].map(|priority| NewTask { priority, ..task() })).await;
    let mut worker = other.worker();
    let step = Step { want: 1, at_least: Some(1), ..worker.step() };
    assert_eq!(given(&mut worker, step).await, ids[..1]);
    let mut elsewhere = other.worker_of(&["elsewhere"]);
    elsewhere.beat().await;
    assert_eq!(one.stored(ids[1]).await.why, Some(Why::Load(1)));
    let mut second = one.worker();
    let step = Step { want: 9, at_least: Some(ABOVE_ALL), ..second.step() };
    assert_eq!(given(&mut second, step).await, []);
    assert_eq!(one.stored(ids[1]).await.why, Some(Why::Load(1)), "the lowest of theirs");
    let step = Step { at_least: Some(0), ..second.step() };
    second.send(step).await;
    let Reply::Tasks(seen) = one.read(Read::Tasks(ids[1..].to_vec())).await else { panic!("no tasks") };
    let why: Vec<_> = seen.into_iter().map(|seen| seen.unwrap().why.unwrap()).collect();
    assert_eq!(why, [Why::Next, Why::Load(0)]);
    let Reply::Workers(workers) = one.read(Read::Workers).await else { panic!("no workers") };
    let mut levels: Vec<_> = workers.iter().map(|worker| worker.presence.at_least).collect();
    levels.sort();
    assert_eq!(levels, [None, Some(0), Some(1)]);
    assert_eq!(second.take(9).await, ids[1..], "load that has fallen is in nobody's way");
}

/// A task's `why` is its weight while no live worker has the capacity.
pub async fn a_task_waiting_for_room_says_why(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = one.add([heavy(3), heavy(2)]).await;
    let light = one.add_one(NewTask { kind: kind("light"), ..task() }).await;
    let mut worker = other.worker();
    let step = Step { want: 9, free_capacity: free(4, true), ..worker.step() };
    assert_eq!(given(&mut worker, step).await, ids[..1]);
    assert_eq!(one.stored(ids[1]).await.why, Some(Why::Capacity));
    assert_eq!(one.stored(light).await.why, Some(Why::Unserved));
    let Reply::Workers(workers) = one.read(Read::Workers).await else { panic!("no workers") };
    assert_eq!(workers[0].presence.room, Some(1));
    let mut second = one.worker();
    let step = Step { at_least: Some(5), ..second.step() };
    second.send(step).await;
    assert_eq!(one.stored(ids[1]).await.why, Some(Why::Capacity), "the other one does not take its priority");
    second.beat().await;
    assert_eq!(one.stored(ids[1]).await.why, Some(Why::Next));
    let step = Step { free_capacity: free(1, false), ..second.step() };
    second.send(step).await;
    assert_eq!(one.stored(ids[1]).await.why, Some(Why::Capacity));
    let token = one.row(ids[0]).await.token;
    let complete = vec![Completion { id: ids[0], token, outcome: done() }];
    let step = Step { complete, free_capacity: free(4, true), ..worker.step() };
    worker.send(step).await;
    assert_eq!(one.stored(ids[1]).await.why, Some(Why::Next), "one that holds nothing takes any");
}
