//! The code for sqlx that pages show, on a server.

use std::error::Error;

use interval_queue_postgres::PostgresTasks;
use interval_queue_tasks::{Task, TaskQueue, Worker, testing::assert_added};
use interval_queue_test_support::PostgresServer;
use serde_json::json;

/// Code, and its text.
macro_rules! shown {
    ($text:ident: $($code:tt)*) => {
        const $text: &str = stringify!($($code)*);
        $($code)*
    };
}

/// # Panics
///
/// If no block of the page consists of this code.
fn assert_shown(page: &str, fence: &str, code: &str) {
    let compact = |text: &str| text.split_whitespace().collect::<String>();
    let block = compact(&format!("```{fence}\n{code}\n```"));
    assert!(compact(page).contains(&block), "the page does not show:\n{code}");
}

/// A pool and tasks of one database, in which there is a table of orders.
async fn shop(server: &PostgresServer) -> (sqlx::PgPool, PostgresTasks) {
    let pool = sqlx::PgPool::connect(server.url()).await.unwrap();
    let orders = "CREATE TABLE orders (number integer PRIMARY KEY, paid boolean NOT NULL DEFAULT false)";
    sqlx::query(orders).execute(&pool).await.unwrap();
    (pool, PostgresTasks::connect(server.url()).await.unwrap())
}

mod transactions {
    shown! { SHOP:
        use interval_queue_postgres::PostgresTasks;
        use interval_queue_tasks::{Completed, Context, Task, TaskError, TaskQueue};
        use sqlx::PgPool;

        struct Shop {
            pool: PgPool,
            tasks: PostgresTasks,
        }

        async fn order(shop: &Shop, queue: &TaskQueue) -> Result<(), Box<dyn std::error::Error>> {
            let add = queue.prepare([Task::new("pay", &7)])?;
            let mut transaction = shop.pool.begin().await?;
            sqlx::query("INSERT INTO orders (number) VALUES (7)").execute(&mut *transaction).await?;
            shop.tasks.add_within(&mut *transaction, queue.name(), add).await?;
            transaction.commit().await?;
            Ok(())
        }

        async fn pay(context: Context<Shop>, order: i32) -> Result<Completed, TaskError> {
            let shop = context.state();
            let mut transaction = shop.pool.begin().await?;
            sqlx::query("UPDATE orders SET paid = true WHERE number = $1")
                .bind(order)
                .execute(&mut *transaction)
                .await?;
            let (queue, worker) = (context.queue().name(), context.worker());
            let end = context.done(&order)?;
            let completed = shop.tasks.complete_within(&mut *transaction, queue, worker, &end).await?;
            transaction.commit().await?;
            Ok(completed)
        }
    }

    #[tokio::test]
    #[ignore = "needs postgresql: scripts/test runs it"]
    async fn the_sqlx_shop_adds_and_completes() {
        super::assert_shown(include_str!("../../../docs/transactions.md"), "rust,ignore", SHOP);
        let server = super::PostgresServer::start();
        let (pool, tasks) = super::shop(&server).await;
        let queue = TaskQueue::builder("payments").connect(server.url()).await.unwrap();
        let shop = Shop { pool: pool.clone(), tasks };
        order(&shop, &queue).await.unwrap();
        let worker = super::Worker::builder(&queue).state(shop).handler("pay", pay).build().unwrap();
        worker.run_until_empty().await.unwrap();
        let paid: Vec<(i32, bool)> = sqlx::query_as("SELECT * FROM orders").fetch_all(&pool).await.unwrap();
        assert_eq!(paid, [(7, true)]);
    }
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn the_sqlx_recipe_stores_an_order_and_its_mail() -> Result<(), Box<dyn Error>> {
    let server = PostgresServer::start();
    let (pool, tasks) = shop(&server).await;
    let queue = TaskQueue::builder("mail").connect(server.url()).await?;
    shown! { MAIL:
        let mail = Task::new("send", &json!({"order": 7})).unique("order-7");
        let mut transaction = pool.begin().await?;
        sqlx::query("INSERT INTO orders VALUES ($1)").bind(7).execute(&mut *transaction).await?;
        tasks.add_within(&mut *transaction, queue.name(), queue.prepare([mail])?).await?;
        transaction.commit().await?;
    }
    assert_shown(include_str!("../../../docs/recipes.md"), "rust", MAIL);
    let added = assert_added(&queue, "send", &json!({"order": 7})).await;
    assert_eq!(added.task.unique.unwrap().name.as_str(), "order-7");
    let orders: Vec<(i32,)> = sqlx::query_as("SELECT number FROM orders").fetch_all(&pool).await?;
    assert_eq!(orders, [(7,)]);
    Ok(())
}
