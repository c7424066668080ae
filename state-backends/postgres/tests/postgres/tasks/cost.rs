//! What a task costs the server, printed: `cargo test -p interval-queue-postgres --test postgres cost -- --ignored --nocapture`.

use interval_queue_postgres::{Durability, PostgresTasks};
use interval_queue_task_contract::TaskStore;

use super::support::*;
use crate::common::*;

/// So many tasks of each kind of run, or more if a step does many.
const TASKS: u64 = 400;

/// The processor time of processes so far, in milliseconds, where there is such a list of them.
fn processor(processes: &[i32]) -> u64 {
    let of_one = |process: &i32| -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let mut columns = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let ticks = columns.next()?.parse::<u64>().ok()? + columns.next()?.parse::<u64>().ok()?;
        Some(ticks * 10)
    };
    processes.iter().filter_map(of_one).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_task_costs_a_few_rows() {
    let server = PostgresServer::start();
    for (at_once, durability) in [1, 10, 100]
        .into_iter()
        .flat_map(|at_once| [Durability::Relaxed, Durability::Full].map(|durability| (at_once, durability)))
    {
        let url = fresh_database(&server);
        let count = TASKS * u64::from(at_once).isqrt();
        let connect = async || {
            let builder = PostgresStore::builder(&url).durability(durability).connections(2).timeout(LONG);
            PostgresTasks::on(&builder.connect().await.unwrap()).await.unwrap()
        };
        let first = connect().await;
        first.apply(&mail(), add((0..count).map(task))).await.unwrap();
        let session = session(&url).await;
        let number = async |sql: &str| -> i64 { session.query_one(sql, &[]).await.unwrap().get(0) };
        let wal = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
        let stores = futures::future::join_all((0..4).map(async |_| connect().await)).await;
        let workers = (0..).zip(&stores).map(async |(n, tasks)| {
            let mut worker = Hand::new(tasks, n);
            let (mut ran, mut leased, mut idle) = (0, Vec::new(), 0);
            while idle < 2 {
                let stepped = worker.step(done(&leased), at_once).await;
                leased = stepped.leased;
                ran += leased.len();
                idle = if leased.is_empty() { idle + 1 } else { 0 };
            }
            ran
        });
        let images = "SELECT wal_fpi FROM pg_stat_wal";
        let (wal_before, images_before, begun) = (number(wal).await, number(images).await, Instant::now());
        let ran: usize = futures::future::join_all(workers).await.into_iter().sum();
        let took = begun.elapsed();
        assert_eq!(ran as u64, count);
        let bytes = number(wal).await - wal_before;
        let done =
            "SELECT count(*) FROM interval_queue.interval_queue_task WHERE state = 'done' AND attempt = 1";
        assert_eq!(number(done).await.unsigned_abs(), count);
        let others =
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let processes: Vec<i32> =
            session.query(others, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
        let busy = processor(&processes);
        drop((first, stores));
        // The processes tell what they did when they end.
        let gone = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()";
        while number(gone).await > 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let images = number(images).await - images_before;
        let dead = number("SELECT sum(n_tup_upd + n_tup_del)::bigint FROM pg_stat_user_tables").await;
        let each = |number: i64| number as f64 / count as f64;
        println!(
            "{at_once} at once, {durability:?}: {:.0} tasks a second; for each {:.2} ms of the server's processors, \
             {:.0} bytes of log, {:.2} images of pages in it, {:.1} dead rows",
            count as f64 / took.as_secs_f64(),
            busy as f64 / count as f64,
            each(bytes),
            each(images),
            each(dead),
        );
    }
}
