//! Tables that are somebody else's, users who may not, servers that cannot be written to.

use interval_queue_postgres::PostgresTasks;
use interval_queue_task_contract::{Command, Read, Reply, TaskStore};

use super::support::*;
use crate::common::*;

fn refused<T: std::fmt::Debug>(outcome: Result<T, StateError>, kind: StateErrorKind, words: &[&str]) {
    let error = outcome.unwrap_err();
    let text = format!("{error}");
    assert_eq!(error.kind(), kind, "{error:?}");
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn tables_that_are_not_ours_are_an_error_and_stay() {
    let server = server();
    for (made, kind, words) in [
        ("CREATE TABLE s.interval_queue_task (a integer)", Foreign, "not of this software"),
        (
            "CREATE TABLE s.interval_queue_task_schema (version integer); INSERT INTO s.interval_queue_task_schema VALUES (1)",
            Damaged,
            "drop interval_queue_task_schema, too",
        ),
        (
            "CREATE TABLE s.interval_queue_task (a integer); CREATE TABLE s.interval_queue_task_schema (version integer); \
             INSERT INTO s.interval_queue_task_schema VALUES (99)",
            NewerVersion,
            "upgrade the program",
        ),
    ] {
        let url = fresh_database(&server);
        let session = session(&url).await;
        session.batch_execute(&format!("CREATE SCHEMA s; {made}")).await.unwrap();
        let store = PostgresStore::builder(&url).schema("s").connect().await.unwrap();
        refused(PostgresTasks::on(&store).await, kind, &[words]);
        let tables = session
            .query("SELECT FROM pg_class WHERE relnamespace = 's'::regnamespace AND relkind = 'r'", &[]);
        assert_eq!(tables.await.unwrap().len(), made.matches("CREATE TABLE").count());
    }
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn tables_of_a_newer_program_are_noticed_while_it_runs() {
    let server = server();
    let url = fresh_database(&server);
    let tasks = PostgresTasks::connect(&url).await.unwrap();
    tasks.apply(&mail(), add([task(1)])).await.unwrap();
    let session = session(&url).await;
    session.batch_execute("UPDATE interval_queue.interval_queue_task_schema SET version = 99").await.unwrap();
    refused(tasks.apply(&mail(), add([task(2)])).await, NewerVersion, &["upgrade"]);
    refused(tasks.apply(&mail(), Command::Read(Read::Overview)).await, NewerVersion, &["upgrade"]);
    session.batch_execute("UPDATE interval_queue.interval_queue_task_schema SET version = 5").await.unwrap();
    tasks.apply(&mail(), add([task(2)])).await.unwrap();
    // Somebody drops everything: the next one who adds begins from the start.
    session.batch_execute("DROP SCHEMA interval_queue CASCADE").await.unwrap();
    refused(tasks.apply(&mail(), Command::Read(Read::Overview)).await, NotFound, &["no such queue"]);
    assert_eq!(tasks.queues().await.unwrap(), []);
    tasks.apply(&mail(), add([task(3)])).await.unwrap();
    let read = Command::Read(Read::Tasks(vec![id(1), id(3)]));
    let Reply::Tasks(found) = tasks.apply(&mail(), read).await.unwrap() else { panic!("no tasks") };
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_user_without_rights_gets_an_error_with_the_grants() {
    let server = server();
    let owner = fresh_database(&server);
    let user = owner.replace("postgres@", "clerk@");
    let session = session(&owner).await;
    // Another test that runs may have made the user.
    let _ = session.batch_execute("CREATE USER clerk").await;
    let tasks = PostgresTasks::connect(&user).await.unwrap();
    refused(tasks.apply(&mail(), add([task(1)])).await, Denied, &["clerk", "let an owner open a queue once"]);
    let owners = PostgresTasks::connect(&owner).await.unwrap();
    owners.apply(&mail(), add([task(1)])).await.unwrap();
    refused(tasks.apply(&mail(), add([task(2)])).await, Denied, &["grant"]);
    session
        .batch_execute(
            "GRANT USAGE ON SCHEMA interval_queue TO clerk; \
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA interval_queue TO clerk",
        )
        .await
        .unwrap();
    tasks.apply(&mail(), add([task(2)])).await.unwrap();
    let mut worker = Hand::new(&tasks, 1);
    let leased = worker.step(vec![], 5).await.leased;
    assert_eq!(leased.len(), 2);
    worker.step(done(&leased), 1).await;
    let clerk = crate::common::session(&user).await;
    clerk.query("SELECT interval_queue.add_task('mail')", &[]).await.unwrap();
    assert_eq!(worker.step(vec![], 5).await.leased.len(), 1);
}

/// The rows of one task, of one worker and of the queue, each in turn.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_row_that_cannot_be_used_is_named_and_left() {
    let server = server();
    let url = fresh_database(&server);
    let tasks = PostgresTasks::connect(&url).await.unwrap();
    tasks.apply(&mail(), add([task(1)])).await.unwrap();
    let session = session(&url).await;
    for (column, bad, good) in
        [("kind", "''", "'default'"), ("added", "-1", "1"), ("weight", "-5", "1"), ("tags", "'7'", "NULL")]
    {
        let set = |value| format!("UPDATE interval_queue.interval_queue_task SET {column} = {value}");
        session.batch_execute(&set(bad)).await.unwrap();
        let read = Command::Read(Read::Tasks(vec![id(1)]));
        refused(tasks.apply(&mail(), read).await, Damaged, &["00000000-0000-0007-0000-000000000001", column]);
        session.batch_execute(&set(good)).await.unwrap();
    }
    let mut worker = Hand::new(&tasks, 1);
    assert_eq!(worker.step(vec![], 5).await.leased.len(), 1);
}

/// Connections are ended by somebody, the server is started again, and another transaction holds old rows for long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn steps_go_on_after_lost_connections_and_a_restart() {
    let mut server = PostgresServer::start();
    let store =
        PostgresStore::builder(server.url()).timeout(STALL_TIMEOUT).connections(2).connect().await.unwrap();
    let tasks = PostgresTasks::on(&store).await.unwrap();
    // A busy host may take longer than the store waits here. Adding again changes nothing.
    while let Err(error) = tasks.apply(&mail(), add((0..60).map(task))).await {
        assert!(error.is_retryable(), "{error:?}");
    }
    let idle = session(server.url()).await;
    idle.batch_execute(
        "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM interval_queue.interval_queue_task",
    )
    .await
    .unwrap();
    let mut worker = Hand::new(&tasks, 1);
    let (mut ran, mut complete) = (Vec::new(), vec![]);
    for n in 0..400 {
        if n % 7 == 3 {
            server.psql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'interval-queue'",
            );
        }
        if n == 20 {
            server.restart();
        }
        match worker.try_step(complete.clone(), 1).await {
            Ok(stepped) => {
                assert!(stepped.refused.is_empty());
                ran.extend(stepped.leased.iter().map(|leased| leased.task.id));
                complete = done(&stepped.leased);
                worker.step.held = stepped.resync.then(Vec::new);
            }
            Err(error) => {
                assert!(error.is_retryable(), "{error:?}");
                // What it holds is what it completes: it says so with the next step.
                worker.step.held = Some(Vec::new());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        if ran.len() >= 60 && complete.is_empty() {
            break;
        }
    }
    ran.sort();
    ran.dedup();
    assert_eq!(ran.len(), 60, "each has run");
}
