//! Tables that are somebody else's, users who may not, servers that cannot be written to.

use interval_queue_postgres::PostgresTasks;
use interval_queue_task_contract::{Command, Follow, Read, Reply, State, TaskStore};

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
}

/// Its only right is to execute functions. What it names like a table of the owner's is not used.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_role_with_functions_alone_adds_and_completes() {
    let server = server();
    let owner = fresh_database(&server);
    let tasks = PostgresTasks::connect(&owner).await.unwrap();
    tasks.apply(&mail(), add([])).await.unwrap();
    let mut worker = Hand::new(&tasks, 1);
    worker.step(vec![], 0).await;
    // Events are recorded, which another trigger does.
    let follow = Command::Follow(Follow { after: None, most: 1 });
    tasks.apply(&mail(), follow).await.unwrap();
    let session = session(&owner).await;
    let _ = session.batch_execute("CREATE USER cashier").await;
    let cashier = crate::common::session(&owner.replace("postgres@", "cashier@")).await;
    let call = "SELECT interval_queue.add_task('mail', 'default', '7', '{\"unique\": \"u\"}')";
    let denied = async |statement: &str| {
        let error = cashier.query(statement, &[]).await.unwrap_err();
        assert_eq!(error.code().unwrap().code(), "42501", "{statement}: {error:?}");
    };
    denied(call).await;
    session.batch_execute("GRANT USAGE ON SCHEMA interval_queue TO cashier").await.unwrap();
    denied(call).await;
    let grant = "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA interval_queue TO cashier";
    session.batch_execute(grant).await.unwrap();
    let hidden = "CREATE TEMP TABLE interval_queue_task_queue AS SELECT 1 AS name; \
                  CREATE TEMP TABLE interval_queue_task AS SELECT 1 AS id; \
                  CREATE FUNCTION pg_temp.interval_queue_task_now() RETURNS bigint LANGUAGE sql AS 'SELECT 1/0'; \
                  SET search_path = pg_temp, public";
    cashier.batch_execute(hidden).await.unwrap();
    cashier.query(call, &[]).await.unwrap();
    for relation in ["interval_queue_task", "interval_queue_task_queue", "interval_queue_task_completed"] {
        denied(&format!("SELECT FROM interval_queue.{relation}")).await;
        denied(&format!("DELETE FROM interval_queue.{relation}")).await;
    }
    let leased = worker.step(vec![], 5).await.leased.remove(0);
    let (id, token) = (leased.task.id.uuid(), leased.task.token.to_string());
    let complete = "SELECT interval_queue.complete_task('mail', $1, $2, '\"sent\"')";
    cashier.query(complete, &[&id, &token]).await.unwrap();
    let Reply::Tasks(found) =
        tasks.apply(&mail(), Command::Read(Read::Tasks(vec![leased.task.id]))).await.unwrap()
    else {
        panic!("no tasks")
    };
    assert_eq!(found[0].as_ref().unwrap().task.state, State::Done);
    let functions = "SELECT proname::text, array_to_string(proconfig, ' ') FROM pg_proc \
                     WHERE prosecdef AND pronamespace = 'interval_queue'::regnamespace ORDER BY 1";
    let functions = session.query(functions, &[]).await.unwrap();
    let path = "search_path=interval_queue, pg_temp";
    assert!(functions.iter().all(|row| row.get::<_, String>(1).starts_with(path)), "{functions:?}");
    let names: Vec<String> = functions.iter().map(|row| row.get(0)).collect();
    let of_owner = ["add", "complete", "end", "event_comes"];
    assert_eq!(names, of_owner.map(|name| format!("interval_queue_task_{name}")));
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
