//! Steps stay quick after many tasks have run, and pass nobody by.

use interval_queue_contract::Micros;
use interval_queue_postgres::{Durability, PostgresTasks};
use interval_queue_task_contract::{Add, Outcome, Stepped, TaskStore};

use super::support::*;
use crate::common::*;

/// The server's word that a vacuum would have much to do.
const MUCH: &str = "CREATE OR REPLACE FUNCTION interval_queue.interval_queue_task_dead() RETURNS bigint LANGUAGE sql STABLE \
                    AS 'SELECT 1000000::bigint'";

async fn relaxed(url: &str) -> PostgresTasks {
    let store = PostgresStore::builder(url).durability(Durability::Relaxed).timeout(LONG);
    PostgresTasks::on(&store.connect().await.unwrap()).await.unwrap()
}

fn ids(stepped: &Stepped) -> Vec<u64> {
    stepped.leased.iter().map(|leased| leased.payload.as_str().parse().unwrap()).collect()
}

/// T12: what has run stays in the index until a vacuum, and is in no step's way.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_step_reads_few_pages_after_many_tasks_have_run() {
    const MANY: u64 = 12_000;
    const STEPS: u64 = 40;
    let server = server();
    let url = fresh_database(&server);
    let session = session(&url).await;
    let tasks = relaxed(&url).await;
    tasks.apply(&mail(), add([])).await.unwrap();
    let unkempt = "ALTER TABLE interval_queue.interval_queue_task SET (autovacuum_enabled = false)";
    session.batch_execute(unkempt).await.unwrap();
    let number = async |sql: &str| -> i64 { session.query_one(sql, &[]).await.unwrap().get(0) };
    // Processes tell what they did at the latest when they end.
    let are_gone = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()";
    let pages = "SELECT (idx_blks_read + idx_blks_hit)::bigint FROM pg_statio_user_indexes \
                 WHERE indexrelname = 'interval_queue_task_ready'";
    for from in (0..MANY).step_by(1_000) {
        tasks.apply(&mail(), add((from..from + 1_000).map(task))).await.unwrap();
    }
    let mut hand = Hand::new(&tasks, 1);
    let mut leased = Vec::new();
    loop {
        leased = hand.step(done(&leased), 1_000).await.leased;
        if leased.is_empty() {
            break;
        }
    }
    // Some work goes on until the server has counted, somebody has looked, and a second has passed.
    let last: i64 = number("SELECT max(due) FROM interval_queue.interval_queue_task").await;
    let raised =
        format!("SELECT count(*) FROM interval_queue.interval_queue_task_low_mark WHERE due > {last}");
    for n in MANY.. {
        tasks.apply(&mail(), add([task(n)])).await.unwrap();
        leased = hand.step(done(&leased), 1).await.leased;
        if number(&raised).await > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    hand.step(done(&leased), 0).await;
    drop(tasks);
    while number(are_gone).await > 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let before = number(pages).await;
    let tasks = relaxed(&url).await;
    tasks.apply(&mail(), add((0..STEPS).map(|n| task(100_000 + n)))).await.unwrap();
    let (mut hand, mut leased) = (Hand::new(&tasks, 2), Vec::new());
    for _ in 0..STEPS {
        leased = hand.step(done(&leased), 1).await.leased;
        assert_eq!(leased.len(), 1);
    }
    drop(tasks);
    while number(are_gone).await > 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let passed =
        number("SELECT (pg_relation_size('interval_queue.interval_queue_task_ready') / 8192)::bigint").await;
    let each = (number(pages).await - before) / STEPS.cast_signed();
    assert!(each < passed / 4, "a step has read {each} pages of an index of {passed}");
}

/// T12: row versions that an open transaction retains are in the way of no lookup but that of ready tasks.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn steps_during_an_open_transaction_read_few_index_entries() {
    const MANY: u64 = 3_000;
    let server = server();
    let url = fresh_database(&server);
    let (session, open) = (session(&url).await, session(&url).await);
    let tasks = relaxed(&url).await;
    tasks.apply(&mail(), add([])).await.unwrap();
    // The server plans the statements while there are few tasks, once more after a vacuum, and keeps the plans.
    let (mut hand, mut leased) = (Hand::new(&tasks, 1), Vec::new());
    for from in (0..MANY).step_by(10) {
        if from == 100 {
            session.batch_execute("VACUUM ANALYZE interval_queue.interval_queue_task").await.unwrap();
            open.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_class")
                .await
                .unwrap();
        }
        tasks.apply(&mail(), add((from..from + 10).map(task))).await.unwrap();
        leased = hand.step(done(&leased), 10).await.leased;
        assert_eq!(leased.len(), 10);
    }
    drop(tasks);
    let number = async |sql: &str| -> i64 { session.query_one(sql, &[]).await.unwrap().get(0) };
    // Processes report their statistics at the latest when they end.
    while number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()").await > 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let read = "SELECT s.indexrelname::text, s.idx_tup_read + io.idx_blks_read + io.idx_blks_hit \
                FROM pg_stat_user_indexes AS s JOIN pg_statio_user_indexes AS io USING (indexrelid) \
                WHERE s.relname = 'interval_queue_task' AND s.indexrelname <> 'interval_queue_task_ready'";
    for row in session.query(read, &[]).await.unwrap() {
        let (index, read): (String, i64) = (row.get(0), row.get(1));
        assert!(read.unsigned_abs() < 40 * MANY, "steps have read {read} entries and pages of {index}");
    }
}

/// T4: a task that is given back is due as before.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_task_that_is_given_back_comes_before_those_behind_it() {
    let stage = stage_with_low_marks().await;
    let tasks = &*stage.store;
    for n in 0..20 {
        tasks.apply(&mail(), add([task(n)])).await.unwrap();
        stage.clock.advance(Duration::from_millis(1));
    }
    let (mut one, mut other) = (Hand::new(tasks, 1), Hand::new(tasks, 2));
    let leased = one.step(vec![], 10).await.leased;
    for _ in 0..3 {
        // Maintenance creates the mark, and raises it.
        stage.clock.advance(Duration::from_millis(1_500));
        other.step(vec![], 1).await;
        one.step(vec![], 0).await;
    }
    one.step(ended(&leased[2..4], |_| Outcome::Released), 0).await;
    assert_eq!(ids(&other.step(vec![], 3).await), [2, 3, 13]);
}

/// A transaction of an application that was open for long has added a task that is due before all low-water marks.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_task_that_is_committed_late_is_found_within_a_second_or_so() {
    let server = server();
    let url = fresh_database(&server);
    let tasks = relaxed(&url).await;
    tasks.apply(&mail(), add([])).await.unwrap();
    let mut application = session(&url).await;
    application.batch_execute(MUCH).await.unwrap();
    let late = application.transaction().await.unwrap();
    let new = Add { tasks: [task(0)].into(), sequence: 0, age: Micros::ZERO };
    tasks.add_within(&late, &mail(), new).await.unwrap();
    let due = "SELECT due FROM interval_queue.interval_queue_task";
    let due: i64 = late.query_one(due, &[]).await.unwrap().get(0);
    let low_mark = "SELECT due FROM interval_queue.interval_queue_task_low_mark";
    let (onlooker, mut hand, mut leased) = (session(&url).await, Hand::new(&tasks, 1), Vec::new());
    // The mark is raised above it while others run.
    let (begun, mut next) = (Instant::now(), 1);
    let mut step = async |count: u64| {
        tasks.apply(&mail(), add((next..next + count).map(task))).await.unwrap();
        next += count;
        let stepped = hand.step(done(&leased), 2).await;
        leased = stepped.leased.clone();
        ids(&stepped)
    };
    loop {
        assert!(!step(1).await.contains(&0));
        let low_mark = onlooker.query_opt(low_mark, &[]).await.unwrap();
        if low_mark.is_some_and(|low_mark| low_mark.get::<_, i64>(0) > due) {
            break;
        }
        assert!(begun.elapsed() < LONG, "the mark stays low");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    late.commit().await.unwrap();
    // There is always something else to be had.
    let committed = Instant::now();
    while !step(3).await.contains(&0) {
        assert!(committed.elapsed() < LONG, "it is passed by for ever");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
