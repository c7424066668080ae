//! Applications that misuse their transactions, and schemas that are made by hand.

use std::{fs, path::Path};

use interval_queue_contract::Micros;
use interval_queue_postgres::PostgresTasks;
use interval_queue_task_contract::{
    Add, Command, Completion, Leased, Outcome, Read, Reply, State, TaskStore, WorkerId,
};
use interval_queue_test_support::{PgBouncer, files::skipped};
use uuid::Uuid;

use super::support::*;
use crate::common::*;

async fn state(tasks: &PostgresTasks, n: u64) -> State {
    let read = Command::Read(Read::Tasks(vec![id(n)]));
    let Reply::Tasks(found) = tasks.apply(&mail(), read).await.unwrap() else { panic!("no tasks") };
    found[0].as_ref().unwrap().task.state
}

async fn leased(tasks: &PostgresTasks) -> (Hand<'_>, Leased) {
    tasks.apply(&mail(), add([task(1)])).await.unwrap();
    let mut hand = Hand::new(tasks, 1);
    hand.step(vec![], 0).await;
    let leased = hand.step(vec![], 1).await.leased.remove(0);
    (hand, leased)
}

fn complete(leased: &Leased) -> String {
    format!("SELECT interval_queue.complete_task('mail', '{}', '{}')", leased.task.id, leased.task.token)
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn immediate_constraints_complete_at_once() {
    let server = server();
    let url = fresh_database(&server);
    let tasks = PostgresTasks::connect(&url).await.unwrap();
    let (mut hand, leased) = leased(&tasks).await;
    let application = session(&url).await;
    let call = complete(&leased);
    application.batch_execute(&format!("BEGIN; SET CONSTRAINTS ALL IMMEDIATE; {call}")).await.unwrap();
    // It is completed once: the call finds the run ended already.
    let again = application.batch_execute(&call).await.unwrap_err();
    assert_eq!(again.code().unwrap().code(), "55000");
    application.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(state(&tasks, 1).await, State::Leased);
    let add = "SELECT interval_queue.add_task('mail')";
    let all = format!("BEGIN; SET CONSTRAINTS ALL IMMEDIATE; {call}; {add}; COMMIT");
    application.batch_execute(&all).await.unwrap();
    assert_eq!(state(&tasks, 1).await, State::Done);
    assert_eq!(hand.step(vec![], 5).await.leased.len(), 1);
}

/// It releases its completion before the commit, catches the error and commits nevertheless.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_caught_refusal_completes_nothing() {
    let server = server();
    let url = fresh_database(&server);
    let tasks = PostgresTasks::connect(&url).await.unwrap();
    let (mut hand, first) = leased(&tasks).await;
    let application = session(&url).await;
    let begun = format!("CREATE TABLE effect (task integer); BEGIN; SAVEPOINT run; {}", complete(&first));
    application.batch_execute(&begun).await.unwrap();
    let released = Completion { outcome: Outcome::Released, id: id(1), token: first.task.token };
    let second = hand.step(vec![released], 1).await.leased.remove(0);
    let refused = application.batch_execute("SET CONSTRAINTS ALL IMMEDIATE").await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "55000");
    application.batch_execute("ROLLBACK TO run; INSERT INTO effect VALUES (1); COMMIT").await.unwrap();
    assert_eq!(state(&tasks, 1).await, State::Leased);
    application.batch_execute(&complete(&second)).await.unwrap();
    assert_eq!(state(&tasks, 1).await, State::Done);
    let left = "SELECT FROM interval_queue.interval_queue_task_completed";
    assert!(application.query(left, &[]).await.unwrap().is_empty());
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn transactions_go_through_a_pooler() {
    let server = PostgresServer::start();
    let Some(pooler) = PgBouncer::start(&server, 2) else {
        return skipped("transactions_go_through_a_pooler", "pgbouncer");
    };
    let tasks = PostgresTasks::connect(server.url()).await.unwrap();
    let (mut hand, first) = leased(&tasks).await;
    let (mut one, mut other) = (session(&pooler.url()).await, session(&pooler.url()).await);
    let worker = WorkerId::new(Uuid::from_u64_pair(9, 1));
    let adding = one.transaction().await.unwrap();
    let completing = other.transaction().await.unwrap();
    for n in 2..5 {
        let new = Add { tasks: [task(n)].into(), sequence: 0, age: Micros::ZERO };
        tasks.add_within(&adding, &mail(), new).await.unwrap();
    }
    let end = done(&[first]).remove(0);
    let _completed = tasks.complete_within(&completing, &mail(), worker, &end).await.unwrap();
    adding.commit().await.unwrap();
    completing.commit().await.unwrap();
    assert_eq!(state(&tasks, 1).await, State::Done);
    assert_eq!(hand.step(vec![], 5).await.leased.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn sixteen_applications_commit_while_workers_listen() {
    const APPLICATIONS: usize = 16;
    const COMMITS: usize = 10;
    let server = server();
    let url = fresh_database(&server);
    let tasks = PostgresTasks::connect(&url).await.unwrap();
    tasks.apply(&mail(), add([])).await.unwrap();
    let mut changes = tasks.changes(&mail()).await.unwrap();
    let commits = futures::future::join_all((0..APPLICATIONS).map(async |_| {
        let mut application = session(&url).await;
        for _ in 0..COMMITS {
            let transaction = application.transaction().await.unwrap();
            transaction.query("SELECT interval_queue.add_task('mail')", &[]).await.unwrap();
            transaction.commit().await.unwrap();
        }
    }));
    let work = async {
        let (mut hand, mut ran) = (Hand::new(&tasks, 1), 0);
        hand.step(vec![], 0).await;
        let mut leased = Vec::new();
        while ran < APPLICATIONS * COMMITS {
            leased = hand.step(done(&leased), 50).await.leased;
            ran += leased.len();
            if leased.is_empty() && ran < APPLICATIONS * COMMITS {
                notified(&mut changes).await;
            }
        }
        hand.step(done(&leased), 0).await;
        ran
    };
    let (_, ran) = tokio::join!(commits, work);
    assert_eq!(ran, APPLICATIONS * COMMITS);
}

/// All objects of the schema, as the server describes them.
async fn described(url: &str) -> Vec<String> {
    let sql = "SELECT format('column %s %s %s %s', c.table_name, c.column_name, c.data_type, c.column_default) \
                 FROM information_schema.columns AS c WHERE c.table_schema = 'interval_queue' \
               UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'interval_queue' \
               UNION ALL SELECT pg_get_constraintdef(oid) || conname FROM pg_constraint \
                 WHERE connamespace = 'interval_queue'::regnamespace \
               UNION ALL SELECT pg_get_triggerdef(t.oid) FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid \
                 WHERE c.relnamespace = 'interval_queue'::regnamespace AND NOT t.tgisinternal \
               UNION ALL SELECT pg_get_functiondef(oid) || coalesce(proacl::text, '') FROM pg_proc \
                 WHERE pronamespace = 'interval_queue'::regnamespace \
               UNION ALL SELECT relname || array_to_string(reloptions, ' ') FROM pg_class \
                 WHERE relnamespace = 'interval_queue'::regnamespace ORDER BY 1";
    let rows = session(url).await.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get::<_, Option<String>>(0).unwrap_or_default()).collect()
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn printed_sql_makes_the_tables_that_a_program_makes() {
    let server = server();
    let (by_hand, by_program) = (fresh_database(&server), fresh_database(&server));
    let store = PostgresStore::builder(&by_hand).connect().await.unwrap();
    let printed = store.missing_tables().await.unwrap();
    session(&by_hand).await.batch_execute(&printed).await.unwrap();
    assert_eq!(store.missing_tables().await.unwrap(), "");
    let store = PostgresStore::builder(&by_program).connect().await.unwrap();
    assert!(store.make_tables().await.unwrap());
    let (by_hand, by_program) = (described(&by_hand).await, described(&by_program).await);
    assert_eq!(by_hand, by_program);
    assert!(by_hand.len() > 200, "{by_hand:#?}");
}

/// `psql` makes the tables by `src/schema.sql`, which includes the migrations.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn psql_makes_the_tables_by_the_file_of_the_schema() {
    let server = PostgresServer::start();
    let store = PostgresStore::builder(server.url()).connect().await.unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    // The user who runs psql may not be able to read the sources.
    let copy = server.dir().join("src");
    let mut expected = store.missing_tables().await.unwrap();
    for name in ["pace/migrations/1.sql", "tasks/migrations/1.sql"] {
        let migration = fs::read_to_string(source.join(name)).unwrap();
        expected = expected.replace(&migration, &format!("\\ir {name}\n"));
        fs::create_dir_all(copy.join(name).parent().unwrap()).unwrap();
        fs::write(copy.join(name), migration).unwrap();
    }
    let schema = fs::read_to_string(source.join("schema.sql")).unwrap();
    assert!(schema == expected, "write this to src/schema.sql:\n{expected}");
    fs::write(copy.join("schema.sql"), schema).unwrap();
    server.psql(&format!("\\i {}", copy.join("schema.sql").display()));
    assert_eq!(store.missing_tables().await.unwrap(), "");
}
