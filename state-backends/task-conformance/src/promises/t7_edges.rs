//! T7: a task starts only when its edges allow it, and a failure passes down the whole graph.

use interval_queue_task_contract::{OnFailure, Outcome, State};

use crate::{
    Handles,
    client::{behind, task, usual},
};

pub async fn a_failure_goes_down_the_whole_graph(handles: Handles) {
    let queue = usual(handles).await.0;
    let up = queue.add_one(task()).await;
    let other = queue.add_one(task()).await;
    let child = queue.add_one(behind([up, other], OnFailure::Cancel)).await;
    let grandchild = queue.add_one(behind([child], OnFailure::Cancel)).await;
    let heir = queue.add_one(behind([child, other], OnFailure::Run)).await;
    let mut worker = queue.worker();
    let run = worker.one().await;
    worker.end(run, Outcome::Failed("no".into())).await;
    worker.tidy().await;
    let states = queue.states(&[child, grandchild, heir]).await;
    assert_eq!(states, [State::Cancelled, State::Cancelled, State::Waiting], "one upstream has not ended");
    assert_eq!(worker.run().await, other);
    assert_eq!(worker.run().await, heir);
}
