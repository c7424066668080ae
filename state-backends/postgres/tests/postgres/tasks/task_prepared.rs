//! Statements that are prepared, and a pooler that moves connections away from them.

use std::collections::BTreeSet;

use interval_queue_postgres::{
    PostgresTasks,
    deadpool_postgres::{Config, Pool, PoolConfig, Runtime},
};
use interval_queue_task_contract::TaskStore;
use tokio_postgres::NoTls;

use super::support::*;
use crate::common::*;

const PREPARED: &str = "SELECT count(*) FROM pg_prepared_statements";

/// Tasks over a pool of one connection, which others may use.
async fn over_one(url: &str) -> (PostgresTasks, Pool) {
    let mut config = Config::new();
    (config.url, config.pool) = (Some(url.to_owned()), Some(PoolConfig::new(1)));
    let pool = config.create_pool(Some(Runtime::Tokio1), NoTls).unwrap();
    let store = PostgresStore::over(pool.clone()).timeout(LONG).connect().await.unwrap();
    (PostgresTasks::on(&store).await.unwrap(), pool)
}

async fn count(pool: &Pool, sql: &str) -> i64 {
    pool.get().await.unwrap().query_typed_one(sql, &[]).await.unwrap().get(0)
}

/// What a pooler may do to the process that a connection meets next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    None,
    /// The statements are gone, and the mark is there.
    Lost,
    /// It is another process, which knows nothing.
    Moved,
    /// It is another process, and each name is a statement of somebody else, which writes.
    Mixed,
}

async fn harm(pool: &Pool, harm: Harm) {
    let client = pool.get().await.unwrap();
    let named = "SELECT name, array_to_string(parameter_types, ', ') FROM pg_prepared_statements";
    let named = client.query_typed(named, &[]).await.unwrap();
    assert!(named.len() > 5, "only {} statements are prepared", named.len());
    match harm {
        Harm::None => {}
        Harm::Lost => client.batch_execute("DEALLOCATE ALL").await.unwrap(),
        Harm::Moved | Harm::Mixed => client.batch_execute("DISCARD ALL").await.unwrap(),
    }
    if harm == Harm::Mixed {
        for row in &named {
            let (name, kinds): (String, String) = (row.get(0), row.get(1));
            let sql = format!("PREPARE {name} ({kinds}) AS INSERT INTO public.effect VALUES (1)");
            client.batch_execute(&sql).await.unwrap();
        }
    }
}

/// Each task runs once, and nothing else happens, whatever becomes of the statements on the way.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_pooler_that_mixes_statements_up_harms_no_command() {
    const TASKS: u64 = 24;
    let server = server();
    for kind in [Harm::None, Harm::Lost, Harm::Moved, Harm::Mixed] {
        let url = fresh_database(&server);
        session(&url).await.batch_execute("CREATE TABLE public.effect (task integer)").await.unwrap();
        let (tasks, pool) = over_one(&url).await;
        tasks.apply(&mail(), add((0..TASKS).map(task))).await.unwrap();
        let mut hand = Hand::new(&tasks, 1);
        let (mut leased, mut ran) = (Vec::new(), BTreeSet::new());
        for round in 0..TASKS + 4 {
            if round == TASKS / 2 {
                harm(&pool, kind).await;
            }
            let stepped = hand.step(done(&leased), 1).await;
            assert!(stepped.lost.is_empty(), "{kind:?}: {stepped:?}");
            leased = stepped.leased;
            assert!(leased.iter().all(|leased| ran.insert(leased.task.id)), "{kind:?}: {leased:?} again");
        }
        assert_eq!(ran.len() as u64, TASKS, "{kind:?}");
        let done =
            "SELECT count(*) FROM interval_queue.interval_queue_task WHERE state = 'done' AND attempt = 1";
        assert_eq!(count(&pool, done).await.unsigned_abs(), TASKS, "{kind:?}");
        assert_eq!(count(&pool, "SELECT count(*) FROM public.effect").await, 0, "{kind:?}");
        // Once they were mixed up, nothing is prepared any more.
        assert_eq!(count(&pool, PREPARED).await > 0, kind == Harm::None, "{kind:?}");
    }
}
