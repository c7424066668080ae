//! T5: late binding: a task leased for a slot is exchanged for a more urgent one.

use interval_queue_task_contract::{Completion, NewTask, Outcome, Step};

use crate::{
    Handles,
    client::{task, usual},
};

pub async fn a_task_that_waits_for_its_slot_gives_it_to_a_more_urgent_one(handles: Handles) {
    let queue = usual(handles).await.0;
    let mild = queue.add_one(NewTask { weight: 3, ..task() }).await;
    let mut worker = queue.worker();
    let run = worker.one().await;
    let urgent = queue.add_one(NewTask { priority: 9, weight: 7, ..task() }).await;
    let complete = vec![Completion { id: mild, token: run.1, outcome: Outcome::Exchanged }];
    let step = Step { complete, want: 1, ..worker.step() };
    let leased = worker.send(step).await.leased.remove(0).task;
    assert_eq!((leased.id, leased.weight), (urgent, 7), "with the weight that its slot has to have");
    let x = queue.row(mild).await;
    assert_eq!((x.failures, x.returns, x.history.len()), (0, 0, 0), "it was never begun");
}
