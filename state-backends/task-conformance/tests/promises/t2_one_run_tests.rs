//! T2 on a store that is rolled back: the worker that knows more is told so until it has said what it holds.

use std::time::Duration;

use interval_queue_conformance::ManualClock;
use interval_queue_contract::{Micros, QueueName};
use interval_queue_memory::MemoryTasks;
use interval_queue_task_conformance::client::{done, task};
use interval_queue_task_contract::{
    Add, Command, Completion, Kind, Read, Reply, State, Step, Stepped, TaskStore, WorkerId,
};

/// A request that arrives again is the first that a rolled-back store hears of a worker, and nobody hears its answer.
#[tokio::test]
async fn a_worker_ahead_of_the_store_is_asked_until_it_resyncs() {
    let clock = ManualClock::new();
    let (reading, name) = (clock.clone(), QueueName::new("mail").unwrap());
    let store = MemoryTasks::with_clock(move || reading.now());
    let send = async |command| store.apply(&name, command).await.unwrap();
    let step = async |step: Step| -> Stepped {
        clock.advance(Duration::from_millis(200));
        match send(Command::Step(step)).await {
            Reply::Stepped(stepped) => stepped,
            other => panic!("{other:?}"),
        }
    };
    let first = Step::first(WorkerId::LAST, [Kind::default()], Micros::from_millis(60_000));
    let later = |sequence| Step { sequence, acknowledged: sequence - 1, held: None, ..first.clone() };
    let new = task();
    send(Command::Add(Add { tasks: [new.clone()].into(), sequence: 0, age: Micros::ZERO })).await;
    step(first.clone()).await;
    let leased = step(Step { want: 1, ..later(2) }).await.leased;
    let copy = store.copy();
    let complete = Completion { id: new.id, token: leased[0].task.token, outcome: done() };
    step(Step { complete: vec![complete], ..later(3) }).await;
    step(later(4)).await;
    store.restore(copy);
    assert!(step(later(4)).await.resync, "a request that arrives again");
    assert!(step(later(5)).await.resync, "the worker itself, which has not heard that");
    step(Step { held: Some(Vec::new()), ..later(6) }).await;
    let Reply::Tasks(rows) = send(Command::Read(Read::Tasks(vec![new.id]))).await else { panic!("tasks") };
    assert_eq!(rows[0].as_ref().map(|stored| stored.task.state), Some(State::Ready));
}
