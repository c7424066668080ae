//! Whole graphs of tasks, as producers add and change them.

use interval_queue_task_contract::{
    Added, Completion, EdgeState, Json, Key, LATE_ADD, NewEdge, NewTask, OnFailure, Outcome, Read, Reply,
    State, Step, TaskId, Verb,
};

use crate::client::{Client, Handles, Worker, behind, done, task, usual};

/// More tasks than a poll notifies and one command reads.
const WIDE: usize = 2_000;

/// A first task, `wide` tasks behind it, a last one behind these with named edges.
fn graph(wide: usize) -> Vec<NewTask> {
    let first = task();
    let parts: Vec<_> = (0..wide).map(|_| behind([first.id], OnFailure::Cancel)).collect();
    let edge = |(n, part): (usize, &NewTask)| NewEdge {
        up: part.id,
        name: Some(Key::new(format!("part {n}")).unwrap()),
        on_failure: OnFailure::Cancel,
    };
    let last = NewTask { edges: parts.iter().enumerate().map(edge).collect(), ..task() };
    [vec![first], parts, vec![last]].concat()
}

/// Completes all ready tasks. Each result is the number of earlier ones.
async fn run(worker: &mut Worker) -> Vec<TaskId> {
    let mut all = Vec::new();
    loop {
        let runs = worker.lease(1_000).await;
        if runs.is_empty() {
            return all;
        }
        let complete = runs.iter().zip(all.len()..).map(|(run, n)| Completion {
            id: run.task.id,
            token: run.task.token,
            outcome: Outcome::Done(Json::of(&n).unwrap()),
        });
        let step = Step { complete: complete.collect(), ..worker.step() };
        assert_eq!(worker.send(step).await.lost, []);
        all.extend(runs.iter().map(|run| run.task.id));
    }
}

pub(super) async fn inputs(client: &Client, down: TaskId) -> Vec<(String, String)> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let Reply::Inputs(page) = client.read(Read::Inputs { down, after }).await else {
            panic!("a read of inputs was answered by something else");
        };
        let text = |input: interval_queue_task_contract::Input| {
            (input.name.unwrap().to_string(), input.result.unwrap().to_string())
        };
        all.extend(page.inputs.into_iter().map(text));
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

/// A graph that fans out and in is added whole and runs in order. Takes five seconds on a store that
/// writes a file for each task.
pub async fn a_graph_fans_out_and_in(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = one.add(graph(WIDE)).await;
    let (first, parts, last) = (ids[0], &ids[1..=WIDE], ids[WIDE + 1]);
    let mut worker = other.worker();
    worker.tidy().await;
    assert_eq!(worker.run().await, first);
    assert!(worker.tidy().await > 2, "so many downstreams are more than one step notifies");
    assert_eq!(run(&mut worker).await, parts);
    worker.tidy().await;
    let found = inputs(&one, last).await;
    let expected: Vec<_> = (0..WIDE).map(|n| (format!("part {n}"), n.to_string())).collect();
    assert_eq!(found, expected);
    assert_eq!(run(&mut worker).await, [last]);
}

/// A graph added again, waiting or partly ended, changes nothing.
pub async fn a_repeated_graph_adds_nothing(handles: Handles) {
    let (one, other) = usual(handles).await;
    let batch = graph(5);
    let ids = one.add(batch.clone()).await;
    let again: Vec<_> = ids.iter().copied().map(Added::Again).collect();
    let mut worker = one.worker();
    for _ in 0..3 {
        assert_eq!(other.try_add(batch.clone(), LATE_ADD * 2).await.unwrap(), again);
        worker.tidy().await;
        run(&mut worker).await;
    }
    assert_eq!(one.states(&ids).await, [State::Done; 7]);
    assert_eq!(one.edges(ids[6]).await, [EdgeState::Met; 5]);
    assert_eq!(one.rows().await.len(), 7);
}

/// A task is added behind a waiting, a running and a done task.
pub async fn a_task_is_added_behind_one_in_any_state(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut worker = other.worker();
    let ended = one.add_one(task()).await;
    assert_eq!(worker.run().await, ended);
    let runs = one.add_one(task()).await;
    let run = worker.one().await;
    let waits = one.add_one(behind([runs], OnFailure::Cancel)).await;
    let downs = one.add([ended, runs, waits].map(|up| behind([up], OnFailure::Cancel))).await;
    let all = one.add_one(behind(downs.clone(), OnFailure::Cancel)).await;
    worker.tidy().await;
    assert_eq!(one.states(&downs).await, [State::Ready, State::Waiting, State::Waiting]);
    worker.end(run, done()).await;
    let mut order = Vec::new();
    for _ in 0..5 {
        worker.tidy().await;
        order.push(worker.run().await);
    }
    assert_eq!(order, [waits, downs[0], downs[1], downs[2], all]);
}

/// Tasks retried by one command do not cancel each other, in any order.
pub async fn a_broken_graph_is_retried_at_once(handles: Handles) {
    let (one, other) = usual(handles).await;
    // Downstreams have lower ids, so they are retried first.
    let (last, middle, first) = (task().id, task().id, task().id);
    let ids = [first, middle, last];
    let with = |id, new: NewTask| NewTask { id, ..new };
    one.add([
        with(first, task()),
        with(middle, behind([first], OnFailure::Cancel)),
        with(last, behind([middle], OnFailure::Cancel)),
    ])
    .await;
    let mut worker = other.worker();
    worker.tidy().await;
    let run = worker.one().await;
    worker.end(run, Outcome::Failed("no".into())).await;
    worker.tidy().await;
    assert_eq!(one.states(&ids).await, [State::Failed, State::Cancelled, State::Cancelled]);
    assert_eq!(one.touch(Verb::Retry, ids).await.len(), 3);
    for id in ids {
        worker.tidy().await;
        assert_eq!(worker.run().await, id);
    }
    assert_eq!(one.states(&ids).await, [State::Done; 3]);
}
