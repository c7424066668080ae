//! An application that keeps its data in PostgreSQL and lends its pool of connections to the queue. Start it
//! several times, on one host or many: together they call at one pace.
//!
//!     cargo run --features postgres --example postgres -- postgres://user:password@127.0.0.1/jobs

use std::{env, time::Duration};

use interval_queue::IntervalQueue;
use interval_queue_postgres::{
    PostgresState, PostgresStore,
    deadpool_postgres::{
        Manager, Pool, PoolError,
        tokio_postgres::{Config, NoTls},
    },
};

/// The application's own data: when each call was made. Processes that start together make the table one
/// after the other.
const CALLS: &str = "SELECT pg_advisory_xact_lock(20);
    CREATE TABLE IF NOT EXISTS example_calls (called timestamptz NOT NULL, number int NOT NULL)";

/// What became of the calls of all processes.
const GAPS: &str = "SELECT count(*), round(1000 * extract(epoch FROM avg(gap)))::int8 FROM (
    SELECT called - lag(called) OVER (ORDER BY called) AS gap FROM example_calls
    WHERE called > now() - interval '2 seconds') AS gaps";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = env::args().nth(1).unwrap_or_else(|| "postgres://postgres@127.0.0.1/postgres".to_owned());
    let pool = Pool::builder(Manager::new(url.parse::<Config>()?, NoTls)).max_size(6).build()?;
    pool.get().await?.batch_execute(CALLS).await?;

    // The queue takes a connection of the pool for each command and gives it back.
    let store = PostgresStore::over(pool.clone()).connect().await?;
    let queue = IntervalQueue::builder("example")
        .interval(Duration::from_millis(100))
        .on_error(|error| eprintln!("the state fails: {error}; jobs wait"))
        .open(PostgresState::on(&store).await?)
        .await?;

    let calls = (1..=20).map(|number| {
        let pool = pool.clone();
        move || async move {
            let row = "INSERT INTO example_calls VALUES (clock_timestamp(), $1)";
            pool.get().await?.execute(row, &[&number]).await?;
            Ok::<_, PoolError>(number)
        }
    });
    for job in queue.add_all(calls.map(|call| call())).await? {
        println!("ticket {}: call {}", job.ticket().await?, job.await??);
    }

    let row = pool.get().await?.query_one(GAPS, &[]).await?;
    let (calls, mean): (i64, i64) = (row.get(0), row.get(1));
    println!("in the last two seconds {calls} calls of all processes, one every {mean} ms");
    queue.close().await;
    Ok(())
}
