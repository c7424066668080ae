//! Servers that are only read, and what a failover leaves.

use interval_queue_postgres::PostgresTasks;
use interval_queue_task_conformance::hand::all;
use interval_queue_task_contract::{State, TaskStore};

use super::support::*;
use crate::{
    common::*,
    places::{either, wait_until_in_step},
};

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_replica_is_rejected_and_a_promoted_one_raises_the_tokens() {
    let mut primary = PostgresServer::start();
    let standby = PostgresServer::standby_of(&primary);
    let refused = PostgresTasks::connect(standby.url()).await.unwrap_err();
    assert_eq!(refused.kind(), Denied);
    assert!(refused.to_string().contains("target_session_attrs=read-write"), "{refused}");

    let tasks = PostgresTasks::connect(&either(&standby, &primary)).await.unwrap();
    tasks.apply(&mail(), add((1..=5).map(task))).await.unwrap();
    let mut before = Hand::new(&tasks, 1);
    let leased = before.step(Vec::new(), 3).await.leased;
    before.step(done(&leased[..1]), 0).await;
    wait_until_in_step(&primary, &standby);
    primary.kill();
    let late = before.try_step(done(&leased[1..2]), 0).await.unwrap_err();
    assert_eq!(late.kind(), Unreachable, "none can be written to");
    standby.promote();

    // The worker goes on and says the same again: what it holds is still its own.
    let mut said = before.try_step(done(&leased[1..2]), 0).await;
    while said.as_ref().is_err_and(|error| error.kind() == Unreachable) {
        tokio::time::sleep(Duration::from_millis(50)).await;
        said = before.try_step(done(&leased[1..2]), 0).await;
    }
    let said = said.unwrap();
    assert_eq!(said.lost, [], "{said:?}");
    let stored = all(&tasks, &mail()).await;
    let count = |state| stored.iter().filter(|stored| stored.task.state == state).count();
    assert_eq!((count(State::Done), count(State::Leased), count(State::Ready)), (2, 1, 2));
    let further = Hand::new(&tasks, 2).step(Vec::new(), 5).await.leased;
    assert_eq!(further.len(), 2, "none of those that somebody has");
    let highest = leased.iter().map(|leased| leased.task.token).max().unwrap();
    assert!(further.iter().all(|leased| leased.task.token > highest), "{highest:?} {further:?}");
}
