//! What a task costs, printed:
//! `cargo test --release -p interval-queue-postgres --test postgres tasks::cost -- --ignored --nocapture`.

use interval_queue_postgres::{Durability, PostgresTasks};
use interval_queue_task_contract::{Command, Key, MAX_SCANNED, Order, Read, Reply, Selector, TaskStore};

use super::support::*;
use crate::common::*;

/// So many steps of each worker are made before anything is measured: connections and plans are there by then.
const BEFORE: usize = 20;

/// The processor time of processes so far, in nanoseconds, where there is such a list of them: hundredths of a second.
fn processor<'p>(processes: impl IntoIterator<Item = &'p i32>) -> u64 {
    let of_one = |process: &i32| -> Option<u64> {
        let notified = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name, which may have anything in it, is in brackets; user and system time are fields 14 and 15.
        let (_, fields) = notified.rsplit_once(')')?;
        let lease_clock =
            fields.split_whitespace().skip(11).take(2).map(|lease_clock| lease_clock.parse::<u64>());
        lease_clock.sum::<Result<u64, _>>().ok()
    };
    processes.into_iter().filter_map(of_one).sum::<u64>() * 10_000_000
}

/// `INTERVAL_QUEUE_TASKS=20000` measures as many tasks of each kind of run, and more if a step does many.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn the_cost_of_a_task_is_printed() {
    let tasks = std::env::var("INTERVAL_QUEUE_TASKS").map_or(400, |text| text.parse().unwrap());
    let server = PostgresServer::start();
    for (at_once, durability) in [1, 10, 100]
        .into_iter()
        .flat_map(|at_once| [Durability::Relaxed, Durability::Full].map(|durability| (at_once, durability)))
    {
        let url = fresh_database(&server);
        let connect = async || {
            let builder = PostgresStore::builder(&url).durability(durability).connections(2).timeout(LONG);
            PostgresTasks::on(&builder.connect().await.unwrap()).await.unwrap()
        };
        let first = connect().await;
        let before = 4 * BEFORE as u64 * u64::from(at_once);
        let total = before + tasks * u64::from(at_once).isqrt();
        for from in (0..total).step_by(1_000) {
            first.apply(&mail(), add((from..total.min(from + 1_000)).map(task))).await.unwrap();
        }
        let session = session(&url).await;
        let number = async |sql: &str| -> i64 { session.query_one(sql, &[]).await.unwrap().get(0) };
        let stores = futures::future::join_all((0..4).map(async |_| connect().await)).await;
        let mut workers: Vec<_> =
            (0..).zip(&stores).map(|(n, tasks)| (Hand::new(tasks, n), Vec::new())).collect();
        // Each makes so many steps, or until nothing is left.
        let run = async |workers: &mut Vec<(Hand<'_>, Vec<_>)>, most: usize| {
            let run = workers.iter_mut().map(async |(hand, leased)| {
                let (mut ran, mut idle) = (0, 0);
                for _ in 0..most {
                    *leased = hand.step(done(leased), at_once).await.leased;
                    ran += leased.len();
                    idle = if leased.is_empty() { idle + 1 } else { 0 };
                    if idle == 2 {
                        break;
                    }
                }
                ran
            });
            futures::future::join_all(run).await.into_iter().sum::<usize>()
        };
        let warmed = run(&mut workers, BEFORE).await;
        let others =
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let processes: Vec<i32> =
            session.query(others, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
        let ours = [i32::try_from(std::process::id()).unwrap()];
        let busy = || (processor(&processes), processor(&ours));
        let wal = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
        let wal_before = number(wal).await;
        let (busy_before, begun) = (busy(), Instant::now());
        let ran = run(&mut workers, usize::MAX).await;
        let (took, busy) = (begun.elapsed(), busy());
        let bytes = number(wal).await - wal_before;
        assert_eq!((ran + warmed) as u64, total);
        let done =
            "SELECT count(*) FROM interval_queue.interval_queue_task WHERE state = 'done' AND attempt = 1";
        assert_eq!(number(done).await.unsigned_abs(), total);
        drop(workers);
        drop((first, stores));
        // The processes tell what they did when they end.
        let gone = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()";
        while number(gone).await > 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let dead = number("SELECT sum(n_tup_upd + n_tup_del)::bigint FROM pg_stat_user_tables").await;
        let each = |number: u64| number as f64 / ran as f64;
        println!(
            "{at_once} at once, {durability:?}: {:.0} tasks a second; for each {:.0} µs of the server's processors and {:.0} µs of \
             the workers', {:.0} bytes of log, {:.1} dead rows",
            ran as f64 / took.as_secs_f64(),
            each(busy.0 - busy_before.0) / 1e3,
            each(busy.1 - busy_before.1) / 1e3,
            each(bytes.unsigned_abs()),
            dead as f64 / total as f64,
        );
    }
}

/// The server plans a statement when few tasks are stored, and keeps the plan.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_step_planned_among_few_tasks_reads_few_rows_among_many() {
    const MANY: u64 = 3_000;
    let server = server();
    let url = fresh_database(&server);
    let store = PostgresStore::builder(&url).durability(Durability::Relaxed).connections(1).timeout(LONG);
    let tasks = PostgresTasks::on(&store.connect().await.unwrap()).await.unwrap();
    tasks.apply(&mail(), add((0..20).map(task))).await.unwrap();
    let (mut hand, mut leased) = (Hand::new(&tasks, 1), Vec::new());
    for round in 0..40 {
        if round == 20 {
            for from in (20..MANY).step_by(1_000) {
                tasks.apply(&mail(), add((from..MANY.min(from + 1_000)).map(task))).await.unwrap();
            }
        }
        leased = hand.step(done(&leased), 1).await.leased;
    }
    let session = session(&url).await;
    drop(tasks);
    let number = async |sql: &str| -> i64 { session.query_one(sql, &[]).await.unwrap().get(0) };
    while number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()").await > 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let read = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_user_tables \
                WHERE relname = 'interval_queue_task'";
    let read = number(read).await.unsigned_abs();
    assert!(read < 2 * MANY, "40 steps have read {read} rows");
}

/// Tasks of each range that a page by ended merges: of each ended state, retained, not notified.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_page_of_ended_tasks_reads_few_rows() {
    let server = server();
    let url = fresh_database(&server);
    let connect = async || {
        let store = PostgresStore::builder(&url).durability(Durability::Relaxed).connections(1).timeout(LONG);
        PostgresTasks::on(&store.connect().await.unwrap()).await.unwrap()
    };
    let page = async |tasks: &PostgresTasks, selector, limit| {
        let page = Read::Page { selector, after: Order::Ended.start(), limit, bodies: false };
        let Reply::Page(page) = tasks.apply(&mail(), Command::Read(page)).await.unwrap() else {
            panic!("no page")
        };
        page
    };
    let tasks = connect().await;
    tasks.apply(&mail(), add([])).await.unwrap();
    let session = session(&url).await;
    let insert = "INSERT INTO interval_queue.interval_queue_task \
                  (queue, id, state, kind, due, added, ended, notified, retained) \
                  SELECT q.number, gen_random_uuid(), s.state, 'default', 0, 0, 1 + i % 1000, s.notified, s.retained \
                  FROM interval_queue.interval_queue_task_queue AS q, generate_series(1, $1::bigint) AS i, \
                  (VALUES ('done', true, false), ('failed', true, false), ('cancelled', true, false), \
                  ('purged', true, false), ('done', true, true), ('failed', false, false)) AS s (state, notified, retained)";
    session.execute(insert, &[&(2 * i64::from(MAX_SCANNED))]).await.unwrap();

    let none = Selector { key: Some(Key::new("none").unwrap()), ..Selector::default() };
    let scanned = page(&tasks, none, 10).await;
    assert!(scanned.tasks.is_empty() && scanned.next.is_some());
    drop(tasks);
    let number = async |sql: &str| -> i64 { session.query_one(sql, &[]).await.unwrap().get(0) };
    while number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()").await > 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let read = "SELECT (seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_user_tables \
                WHERE relname = 'interval_queue_task'";
    let read = number(read).await.unsigned_abs();
    assert!(read > 0 && read < 3 * u64::from(MAX_SCANNED), "the page has read {read} rows");

    let first = page(&connect().await, Selector::default(), 500).await.tasks;
    let first: Vec<_> = first.into_iter().map(|stored| stored.task.id.uuid()).collect();
    let expected = "SELECT id FROM interval_queue.interval_queue_task WHERE state <> 'purged' \
                    ORDER BY ended DESC, id DESC LIMIT 500";
    let expected = session.query(expected, &[]).await.unwrap();
    assert_eq!(first, expected.iter().map(|row| row.get(0)).collect::<Vec<uuid::Uuid>>());
}
