//! A small shop whose orders and tasks are in one database, and in the same transactions.
//!
//! An order and the task that books it are stored together or not at all. The handler takes the goods from
//! the stock, and ends its run in the same transaction, so that each order takes them exactly once: also
//! here, where a handler panics every now and then, before its commit or after it.
//!
//!     cargo run --features orders --example orders

use std::{error::Error, path::PathBuf, time::Duration};

use interval_queue_sqlite::SqliteTasks;
use interval_queue_tasks::{Completed, Context, Policy, Task, TaskError, TaskQueue, Worker};
use rusqlite::Connection;

const ORDERS: u32 = 60;

#[derive(Clone)]
struct Shop {
    path: PathBuf,
    tasks: SqliteTasks,
}

/// Takes the goods of an order from the stock.
fn book(context: &Context<Shop>, order: u32) -> Result<Completed, TaskError> {
    let shop = context.state();
    let mut database = Connection::open(&shop.path)?;
    let transaction = database.transaction()?;
    transaction.execute("UPDATE stock SET left = left - 1", [])?;
    transaction.execute("UPDATE orders SET booked = booked + 1 WHERE number = ?1", [order])?;
    let end = context.done(&order)?;
    let completed =
        shop.tasks.complete_within(&transaction, context.queue().name(), context.worker(), &end)?;
    accident(order.is_multiple_of(7) && context.attempt() == 1);
    transaction.commit()?;
    accident(order.is_multiple_of(5));
    Ok(completed)
}

#[allow(clippy::panic, reason = "accidents happen")]
fn accident(happens: bool) {
    if happens {
        panic!("an accident");
    }
}

/// The database blocks the thread, so it is one that may block.
async fn booked(context: Context<Shop>, order: u32) -> Result<Completed, TaskError> {
    tokio::task::spawn_blocking(move || book(&context, order)).await?
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Accidents are expected here.
    std::panic::set_hook(Box::new(|_| {}));
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("shop.db");
    let mut database = Connection::open(&path)?;
    database.execute_batch(
        "CREATE TABLE stock (left INTEGER NOT NULL);
         INSERT INTO stock VALUES (1000);
         CREATE TABLE orders (number INTEGER PRIMARY KEY, booked INTEGER NOT NULL)",
    )?;
    let builder = TaskQueue::builder("bookings");
    let queue = builder
        .policy(Policy::default().backoff(Duration::from_millis(50), Duration::from_secs(1)))
        .connect(&format!("sqlite:{}", path.display()))
        .await?;
    let tasks = SqliteTasks::open(&path).await?;

    for order in 1..=ORDERS {
        let transaction = database.transaction()?;
        transaction.execute("INSERT INTO orders VALUES (?1, 0)", [order])?;
        tasks.add_within(&transaction, queue.name(), queue.prepare([Task::new("book", &order)])?)?;
        // Some customers change their minds: neither the order nor its task is there.
        if order.is_multiple_of(10) { transaction.rollback()? } else { transaction.commit()? }
    }

    let shop = Shop { path, tasks };
    let worker = Worker::builder(&queue).state(shop).handler("book", booked).build()?;
    worker.run_until_empty().await?;

    let count = |sql: &str| database.query_row(sql, [], |row| row.get::<_, u32>(0));
    let orders = count("SELECT count(*) FROM orders")?;
    let booked = count("SELECT count(*) FROM orders WHERE booked = 1")?;
    let taken = 1000 - count("SELECT left FROM stock")?;
    println!("{orders} orders, {booked} of them booked once, {taken} goods taken from the stock");
    assert_eq!((orders, booked, taken), (54, 54, 54));
    Ok(())
}
