//! Tasks that wait for upstreams.

use interval_queue_task_contract::{
    EdgeState, Input, Inputs, Json, NewEdge, NewTask, OnFailure, Outcome, Read, Reply, State, TaskId, Verb,
    Why,
};

use crate::client::{Client, Handles, attempts, behind, done, in_seconds, key, task, usual};

async fn inputs(client: &Client, down: TaskId, after: Option<TaskId>) -> Inputs {
    match client.read(Read::Inputs { down, after }).await {
        Reply::Inputs(inputs) => inputs,
        other => panic!("a read of inputs was answered by {other:?}"),
    }
}

/// A task waits for all upstreams and gets their results by name.
pub async fn a_task_gets_the_results_of_its_upstreams(handles: Handles) {
    let (one, other) = usual(handles).await;
    let (left, right) = (task(), task());
    let mut down = behind([left.id], OnFailure::Cancel);
    down.edges.push(NewEdge { up: right.id, name: Some(key("right")), on_failure: OnFailure::Cancel });
    let ids = one.add([left, right, down]).await;
    let mut worker = other.worker();
    let runs = worker.lease(9).await;
    assert_eq!(runs.len(), 2);
    assert_eq!(one.stored(ids[2]).await.why, Some(Why::Upstreams));
    let result = Json::new("{\"n\": 1}").unwrap();
    worker.end((ids[0], runs[0].task.token), Outcome::Done(result.clone())).await;
    assert_eq!(worker.take(9).await, []);
    worker.end((ids[1], runs[1].task.token), done()).await;
    assert_eq!(worker.take(9).await, [ids[2]]);
    let found = inputs(&one, ids[2], None).await;
    let on_failure = OnFailure::Cancel;
    let input = |up, name, result| Input { name, up, on_failure, state: State::Done, result };
    let expected = [input(ids[0], None, Some(result)), input(ids[1], Some(key("right")), None)];
    assert_eq!((found.inputs, found.next), (expected.to_vec(), None));
    assert_eq!(inputs(&one, ids[2], Some(ids[0])).await.inputs, expected[1..]);
}

/// After a failed upstream, a task acts as its edge specifies.
pub async fn a_failed_upstream_acts_as_its_edges_say(handles: Handles) {
    let (one, other) = usual(handles).await;
    let up = one.add_one(task()).await;
    let ids =
        one.add([OnFailure::Cancel, OnFailure::Run, OnFailure::Wait].map(|mode| behind([up], mode))).await;
    let mut worker = other.worker();
    let run = worker.one().await;
    worker.end(run, Outcome::Failed("no".into())).await;
    worker.tidy().await;
    assert_eq!(one.states(&ids).await, [State::Cancelled, State::Ready, State::Waiting]);
    let expected = [EdgeState::Cut, EdgeState::Failed, EdgeState::Held];
    for (&id, expected) in ids.iter().zip(expected) {
        assert_eq!(one.edges(id).await, [expected]);
    }
    // A task added after the failure acts alike.
    let later =
        one.add([OnFailure::Cancel, OnFailure::Run, OnFailure::Wait].map(|mode| behind([up], mode))).await;
    worker.tidy().await;
    assert_eq!(one.states(&later).await, [State::Cancelled, State::Ready, State::Waiting]);
}

/// The end of a task passes down the whole graph, a bounded part per poll.
pub async fn an_end_goes_down_the_whole_graph(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut batch = vec![task()];
    for n in 1..500 {
        let up = batch[n - 1].id;
        batch.push(behind([up], OnFailure::Cancel));
    }
    let ids = one.add(batch).await;
    let mut worker = other.worker();
    worker.tidy().await;
    assert_eq!(one.touch(Verb::Cancel, [ids[0]]).await, [ids[0]]);
    assert!(worker.tidy().await > 1, "500 tasks are more than one step does");
    assert_eq!(one.states(&ids).await, [State::Cancelled; 500]);
}

/// A task waits for a thousand upstreams, checked in parts.
pub async fn a_task_waits_for_a_thousand_others(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ups = one.add((0..1_000).map(|_| task())).await;
    let down = one.add_one(behind(ups.clone(), OnFailure::Cancel)).await;
    let mut worker = other.worker();
    assert!(worker.tidy().await > 2, "a thousand edges are more than one step does");
    let runs: Vec<_> = worker.lease(1_000).await.iter().map(|run| (run.task.id, run.task.token)).collect();
    assert_eq!(runs.len(), 1_000);
    for (n, some) in runs.chunks(250).enumerate() {
        assert_eq!(one.state(down).await, State::Waiting, "after {n} chunks");
        let complete = some.iter().map(|&(id, token)| interval_queue_task_contract::Completion {
            id,
            token,
            outcome: done(),
        });
        let step = interval_queue_task_contract::Step { complete: complete.collect(), ..worker.step() };
        worker.send(step).await;
        worker.tidy().await;
    }
    assert_eq!(worker.take(9).await, [down]);
    let mut found = 0;
    let mut after = None;
    loop {
        let page = inputs(&one, down, after).await;
        found += page.inputs.len();
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, 1_000);
}

/// A task retried with its upstream waits for it again and gets its new result.
pub async fn a_retry_waits_for_what_runs_again(handles: Handles) {
    let (one, other) = usual(handles).await;
    let up = one.add_one(task()).await;
    let down = one.add_one(behind([up], OnFailure::Run)).await;
    let mut worker = other.worker();
    for lives in 1..3 {
        let run = worker.one().await;
        assert_eq!(run.0, up);
        worker.end(run, Outcome::Done(Json::of(&lives).unwrap())).await;
        assert_eq!(worker.run().await, down);
        let found = inputs(&one, down, None).await.inputs;
        assert_eq!(found[0].result, Some(Json::of(&lives).unwrap()));
        assert_eq!(one.touch(Verb::Retry, [up, down]).await.len(), 2);
        worker.tidy().await;
        assert_eq!(one.states(&[up, down]).await, [State::Ready, State::Waiting]);
    }
    // A task that was not retried and has not started waits, too.
    let late = one.add_one(NewTask { not_before: in_seconds(99), ..behind([up], OnFailure::Run) }).await;
    assert_eq!([worker.run().await, worker.run().await], [up, down]);
    worker.tidy().await;
    assert_eq!(one.state(late).await, State::Scheduled);
    assert_eq!(one.touch(Verb::Retry, [up]).await, [up]);
    worker.tidy().await;
    assert_eq!(one.states(&[up, late]).await, [State::Ready, State::Waiting]);
    assert_eq!(one.edges(late).await, [EdgeState::Open]);
    assert_eq!(one.state(down).await, State::Done, "it has run");
    // A retried task whose upstreams are done starts at once.
    assert_eq!(worker.run().await, up);
    assert_eq!(one.touch(Verb::Retry, [down]).await, [down]);
    assert_eq!(worker.run().await, down);
}

/// A retry reopens edges of the task and of its waiting downstreams, not of cancelled ones.
pub async fn a_retry_reopens_edges(handles: Handles) {
    let (one, other) = usual(handles).await;
    let up = one.add_one(NewTask { policy: attempts(1), ..task() }).await;
    let ids = one.add([behind([up], OnFailure::Wait), behind([up], OnFailure::Cancel)]).await;
    let mut worker = other.worker();
    for _ in 0..2 {
        let run = worker.one().await;
        worker.end(run, Outcome::Error("no".into())).await;
        worker.tidy().await;
        assert_eq!(
            one.states(&[up, ids[0], ids[1]]).await,
            [State::Failed, State::Waiting, State::Cancelled]
        );
        assert_eq!(one.touch(Verb::Retry, [up]).await, [up]);
    }
    assert_eq!(worker.run().await, up);
    assert_eq!(worker.run().await, ids[0]);
    assert_eq!(one.state(ids[1]).await, State::Cancelled);
    // A cancelled task that is retried checks its upstream again.
    assert_eq!(one.touch(Verb::Retry, [ids[1]]).await, [ids[1]]);
    assert_eq!(worker.run().await, ids[1]);
    assert_eq!(one.edges(ids[1]).await, [EdgeState::Met]);
}
