//! What transactions of an application do is told to those who follow when they commit.

use interval_queue_contract::Micros;
use interval_queue_postgres::PostgresTasks;
use interval_queue_task_contract::{
    Add, Command, Event, Follow, Followed, Mark, Reply, State, TaskId, TaskStore, WorkerId,
};
use uuid::Uuid;

use super::support::*;
use crate::common::*;

async fn follow(tasks: &PostgresTasks, after: Option<Mark>) -> Followed {
    match tasks.apply(&mail(), Command::Follow(Follow { after, most: 100 })).await.unwrap() {
        Reply::Followed(followed) => followed,
        other => panic!("{other:?}"),
    }
}

fn steps(events: &[Event]) -> Vec<(TaskId, Option<State>, Option<State>)> {
    events.iter().map(|event| (event.task, event.from, event.to)).collect()
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn events_of_a_transaction_are_published_at_its_commit() {
    let server = server();
    let url = fresh_database(&server);
    let store = PostgresStore::builder(&url).timeout(STALL_TIMEOUT).connect().await.unwrap();
    let tasks = PostgresTasks::on(&store).await.unwrap();
    tasks.apply(&mail(), add([task(1), task(2)])).await.unwrap();
    let mut hand = Hand::new(&tasks, 1);
    let leased = hand.step(vec![], 2).await.leased;
    let worker = WorkerId::new(Uuid::from_u64_pair(9, 1));
    let mut mark = follow(&tasks, None).await.mark;
    let mut application = session(&url).await;
    for (n, commits) in [(0_u64, false), (1, true)] {
        let (first, second) = (10 + 10 * n, 11 + 10 * n);
        let transaction = application.transaction().await.unwrap();
        let new = Add { tasks: [task(first)].into(), sequence: 0, age: Micros::ZERO };
        tasks.add_within(&transaction, &mail(), new).await.unwrap();
        let sql = "SELECT interval_queue.add_task( \
                   'mail', 'default', '7', json_build_object('id', $1::uuid, 'delay', '1 hour'))";
        transaction.query_one(sql, &[&id(second).uuid()]).await.unwrap();
        let complete = done(&leased[..1]).remove(0);
        let completed = tasks.complete_within(&transaction, &mail(), worker, &complete).await.unwrap();
        assert_eq!(completed.id, id(1));
        // What others do meanwhile is told, and what is told is not told again.
        let beside = 12 + 10 * n;
        tasks.apply(&mail(), add([task(beside)])).await.unwrap();
        let notified = follow(&tasks, Some(mark)).await;
        assert_eq!(steps(&notified.events), [(id(beside), None, Some(State::Ready))]);
        mark = notified.mark;
        if !commits {
            transaction.rollback().await.unwrap();
            assert_eq!(follow(&tasks, Some(mark)).await.events, []);
            continue;
        }
        transaction.commit().await.unwrap();
        let notified = follow(&tasks, Some(mark)).await;
        let mut found = steps(&notified.events);
        found.sort();
        let mut expected = [
            (id(1), Some(State::Leased), Some(State::Done)),
            (id(first), None, Some(State::Ready)),
            (id(second), None, Some(State::Scheduled)),
        ];
        expected.sort();
        assert_eq!(found, expected);
        let end = notified.events.iter().find(|event| event.task == id(1)).unwrap();
        assert_eq!((end.attempt, end.worker, &end.error), (1, Some(worker), &None));
        assert!(!notified.missed);
    }
}
