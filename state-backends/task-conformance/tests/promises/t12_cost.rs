//! T12: a command asks the same of the tables with a hundred and with thousands of tasks stored.

use std::{sync::Arc, time::Duration};

use interval_queue_conformance::ManualClock;
use interval_queue_contract::{Micros, QueueName};
use interval_queue_task_conformance::hand;
use interval_queue_task_contract::{
    Add, Change, ChangeTasks, Command, Completion, Json, Key, NewEdge, NewTask, OnFailure, Outcome, Read,
    Reply, Selector, Step, TaskId, TaskStore, Verb, When, WorkerId,
};
use uuid::Uuid;

use crate::wrong::{Flaw, Wrong};

fn id(n: u128) -> TaskId {
    TaskId::new(Uuid::from_u128(n))
}

/// One that waits for a key, for an hour, for another one, or for nothing.
fn some(n: u128) -> NewTask {
    let mut new = NewTask::new(id(n), Json::default());
    match n % 4 {
        0 => new.key = Some(Key::new("k").unwrap()),
        1 => new.not_before = When::After(Micros::from_millis(3_600_000)),
        2 => new.edges = vec![NewEdge { up: id(n - 1), name: None, on_failure: OnFailure::Cancel }],
        _ => {}
    }
    new
}

/// What each of some commands costs, with so many tasks stored beside.
async fn costs(stored: u128) -> Vec<(&'static str, (u64, u64))> {
    let clock = ManualClock::new();
    let store = Arc::new(Wrong::new(Flaw::Nothing, clock.clone()));
    let queue = QueueName::new("many").unwrap();
    let mut costs = Vec::new();
    let mut apply = async |name: &'static str, command| {
        let reply = store.apply(&queue, command).await.unwrap();
        costs.push((name, store.cost(&queue)));
        reply
    };
    let add = |tasks: Vec<NewTask>| Command::Add(Add { tasks: tasks.into(), sequence: 0, age: Micros::ZERO });
    apply("", add((100..100 + stored).map(some).collect())).await;
    let worker = WorkerId::new(Uuid::from_u128(1));
    let mut step = Step::first(worker, [Default::default()], Micros::from_millis(60_000));
    loop {
        let Reply::Stepped(stepped) = apply("", Command::Step(step.clone())).await else { panic!("no step") };
        step = Step { sequence: step.sequence + 1, held: None, ..step };
        if !stepped.more {
            break;
        }
    }
    let mut next = || {
        step.sequence += 1;
        step.clone()
    };
    apply("add", add(vec![some(3)])).await;
    apply("add again", add(vec![some(3)])).await;
    apply("add with a key", add(vec![some(4)])).await;
    apply("heartbeat", Command::Step(next())).await;
    let Reply::Stepped(stepped) = apply("lease", Command::Step(Step { want: 2, ..next() })).await else {
        panic!("no step")
    };
    let complete = |n: usize, outcome| {
        let x = &stepped.leased[n].task;
        vec![Completion { id: x.id, token: x.token, outcome }]
    };
    apply("done", Command::Step(Step { complete: complete(0, Outcome::Done(Json::default())), ..next() }))
        .await;
    apply("released", Command::Step(Step { complete: complete(1, Outcome::Released), ..next() })).await;
    let selector = Selector::ids([id(3)]);
    let change =
        ChangeTasks { selector, verb: Verb::Cancel, after: None, watermark: None, limit: 9, dry_run: false };
    apply("cancel", Command::Change(Change::Tasks(change))).await;
    clock.advance(Duration::from_secs(1));
    apply("sweep", Command::Step(next())).await;
    apply("read", Command::Read(Read::Tasks(vec![id(3)]))).await;
    apply("overview", Command::Read(Read::Overview)).await;
    costs.retain(|(name, _)| !name.is_empty());
    costs
}

#[tokio::test]
async fn a_command_costs_the_same_whatever_is_stored() {
    let (few, many) = (costs(100).await, costs(8_000).await);
    assert_eq!(few, many, "calls, and rows found");
    for (name, (calls, found)) in many {
        assert!(calls < 60 && found < 60, "{name}: {calls} calls that find {found} rows");
    }
}

/// The cost of two steps that are given all they want, while so many tasks wait to be admitted: one that does not sweep, and
/// one that does.
async fn costs_beside_a_backlog(waiting: u128) -> [(u64, u64); 2] {
    let clock = ManualClock::new();
    let store = Wrong::new(Flaw::Nothing, clock.clone());
    let queue = QueueName::new("many").unwrap();
    let add = |tasks: Vec<NewTask>| Command::Add(Add { tasks: tasks.into(), sequence: 0, age: Micros::ZERO });
    let worker = WorkerId::new(Uuid::from_u128(1));
    let first = Step::first(worker, [Default::default()], Micros::from_millis(60_000));
    let (first, sequence) = (Step { want: 1, ..first }, 1..);
    store.apply(&queue, add((1..4).map(|n| NewTask::new(id(n), Json::default())).collect())).await.unwrap();
    store.apply(&queue, Command::Step(first.clone())).await.unwrap();
    let with_key = |n: u128| NewTask {
        key: Some(Key::new(["a", "b"][n as usize % 2]).unwrap()),
        ..NewTask::new(id(n), Json::default())
    };
    store.apply(&queue, add((100..100 + waiting).map(with_key).collect())).await.unwrap();
    let mut costs = Vec::new();
    for (passes, before) in [Duration::ZERO, Duration::from_millis(100)].into_iter().zip(sequence) {
        clock.advance(passes);
        let step = Step { sequence: before + 1, acknowledged: before, held: None, ..first.clone() };
        let reply = store.apply(&queue, Command::Step(step)).await.unwrap();
        assert!(matches!(reply, Reply::Stepped(stepped) if stepped.leased.len() == 1 && !stepped.more));
        costs.push(store.cost(&queue));
    }
    costs.try_into().unwrap()
}

#[tokio::test]
async fn a_step_costs_the_same_whatever_waits_to_be_admitted() {
    let (few, many) = (costs_beside_a_backlog(200).await, costs_beside_a_backlog(8_000).await);
    assert_eq!(few, many, "calls, and rows found");
    let [(calls, found), sweep] = many;
    assert!(calls < 30 && found < 30, "{calls} calls that find {found} rows");
    assert!(sweep.0 < 1_000 && sweep.1 < 1_000, "{} calls that find {} rows", sweep.0, sweep.1);
}

#[tokio::test]
async fn an_add_costs_in_proportion_to_its_tasks() {
    let (mut calls, mut found) = ([0; 4], [0; 4]);
    for (n, count) in hand::FLOWS.into_iter().enumerate() {
        let store = Wrong::new(Flaw::Nothing, ManualClock::new());
        store.apply(&hand::mail(), hand::flow(count)).await.unwrap();
        (calls[n], found[n]) = store.cost(&hand::mail());
    }
    hand::assert_linear(calls, "calls");
    hand::assert_linear(found, "rows found");
}
