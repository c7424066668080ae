//! Queues are deleted when nobody uses them, and forced ones cost nobody a job.

use std::time::Duration;

use interval_queue::{Deletion, IntervalQueue, QueueName, StateErrorKind, Store, connect};
use tokio::time::{Instant, sleep};

use crate::common::ms;

const MINUTE: Duration = Duration::from_secs(60);

async fn open(store: &Store, name: &str) -> IntervalQueue {
    let builder = IntervalQueue::builder(name).interval(ms(100)).label(format!("label of {name}"));
    builder.open(store).await.unwrap()
}

async fn names(store: &Store) -> Vec<String> {
    store.queues().await.unwrap().iter().map(ToString::to_string).collect()
}

async fn delete(store: &Store, name: &str, deletion: Deletion) -> Result<(), (StateErrorKind, String)> {
    let deleted = store.delete(&QueueName::new(name).unwrap(), deletion).await;
    deleted.map_err(|error| (error.state().unwrap().kind(), error.to_string()))
}

#[tokio::test(start_paused = true)]
async fn a_queue_goes_once_nobody_has_jobs_in_it() {
    let store = connect("memory:").await.unwrap();
    let (idle, busy) = (open(&store, "idle").await, open(&store, "busy").await);
    drop(busy.turn().await.unwrap());
    let waiting = tokio::spawn(async move { busy.turn().await.map(drop) });
    sleep(ms(1)).await;
    assert_eq!(names(&store).await, ["busy", "idle"]);
    delete(&store, "idle", Deletion::Unused).await.unwrap();
    assert_eq!(delete(&store, "idle", Deletion::Forced).await.unwrap_err().0, StateErrorKind::NotFound);
    let (kind, text) = delete(&store, "busy", Deletion::Unused).await.unwrap_err();
    assert!(kind == StateErrorKind::Conflict && text.contains("label of busy"), "{text}");
    waiting.await.unwrap().unwrap();
    sleep(ms(1)).await;
    delete(&store, "busy", Deletion::Unused).await.unwrap();
    assert!(names(&store).await.is_empty());
    // A shard that has it open brings it back.
    drop(idle.turn().await.unwrap());
    assert_eq!(names(&store).await, ["idle"]);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_by_force_costs_waiting_jobs_a_loss_and_no_more() {
    let store = connect("memory:").await.unwrap();
    let queue = open(&store, "mail").await;
    drop(queue.turn().await.unwrap());
    let began = Instant::now();
    let turns: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.turn().await.map(drop) })
        })
        .collect();
    sleep(ms(10)).await;
    delete(&store, "mail", Deletion::Forced).await.unwrap();
    for turn in turns {
        turn.await.unwrap().unwrap();
    }
    let took = began.elapsed();
    assert!(took >= ms(300) && took < ms(900), "three slots, and what a loss costs: {took:?}");
    assert_eq!(names(&store).await, ["mail"]);
}

#[tokio::test(start_paused = true)]
async fn only_what_was_idle_for_so_long_is_pruned() {
    let store = connect("memory:").await.unwrap();
    let mut queues = Vec::new();
    for name in ["busy", "held", "old", "paused", "young"] {
        queues.push(open(&store, name).await);
    }
    let [busy, held, _, paused, young] = &queues[..] else { unreachable!() };
    paused.pause().await.unwrap();
    held.hold(MINUTE * 40).await.unwrap();
    let turn = busy.turn().await.unwrap();
    sleep(MINUTE * 20).await;
    young.hold(ms(1)).await.unwrap();
    sleep(MINUTE * 11).await;
    // A look is no use of a queue.
    queues[2].status().await;
    assert_eq!(store.prune(MINUTE * 30).await.unwrap(), ["old".parse().unwrap()]);
    assert_eq!(names(&store).await, ["busy", "held", "paused", "young"]);
    drop(turn);
    paused.resume().await.unwrap();
    sleep(MINUTE * 30).await;
    assert_eq!(store.prune(MINUTE * 30).await.unwrap().len(), 4);
    assert!(store.prune(MINUTE * 30).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_unreadable_queue_keeps_no_other_from_being_pruned() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("queues.json");
    let store = connect(&format!("file:{}", path.display())).await.unwrap();
    for name in ["a", "b", "c"] {
        open(&store, name).await;
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, after) = text.split_once("\"b\": {").unwrap();
    std::fs::write(&path, format!("{before}\"b\": {{ \"colour\": 1,{after}")).unwrap();
    let error = store.prune(Duration::ZERO).await.unwrap_err();
    assert!(error.to_string().contains("queue \"b\""), "{error}");
    assert_eq!(names(&store).await, ["b"]);
}
