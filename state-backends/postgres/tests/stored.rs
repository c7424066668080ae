//! What is in the database: rows that others spoilt, edited or took away, and what is left untouched.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use interval_queue_contract::{
    Change, Command, Memory, Micros, QueueName, Record, SharedState, StateErrorKind,
};
use interval_queue_postgres::PostgresState;
use interval_queue_test_support::PostgresServer;

fn rows(server: &PostgresServer) -> Vec<String> {
    server.psql(&format!("SELECT * FROM {TABLE} ORDER BY name"))
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn what_is_not_such_a_record_is_left_alone() {
    let server = PostgresServer::start();
    let state = connect_patiently(server.url()).await;
    open(&state).await.unwrap();
    let good = server.psql(&format!("SELECT record::jsonb FROM {TABLE}")).concat();
    let edited = |from: &str, to: &str| {
        assert!(good.contains(from), "{good}");
        good.replace(from, to)
    };
    let newer = Record::VERSION + 1;
    for (record, expected, words) in [
        ("{}".to_owned(), None, "cannot be used"),
        ("{\"colour\": \"red\"}".to_owned(), None, "cannot be used"),
        ("[]".to_owned(), None, "cannot be used"),
        ("null".to_owned(), None, "cannot be used"),
        ("17".to_owned(), None, "cannot be used"),
        (edited("\"interval\": 1000000", "\"interval\":0"), None, "cannot be used"),
        (edited("\"interval\": 1000000", "\"interval\":-5"), None, "cannot be used"),
        (edited("\"interval\": 1000000", "\"interval\":\"\\u0000\""), None, "cannot be used"),
        (
            edited("\"version\": 1", &format!("\"version\":{newer}")),
            Some(StateErrorKind::NewerVersion),
            "upgrade",
        ),
    ] {
        server.psql(&format!("UPDATE {TABLE} SET record = '{record}'"));
        let before = rows(&server);
        let mut kinds = Vec::new();
        let outcomes = [
            open(&state).await.map(drop),
            change(&state, Change::Reset, Memory::default()).await.map(drop),
            Shard::new("a").step(&state, 1).await.map(drop),
            state.apply(&mail(), Command::Read).await.map(drop),
        ];
        for outcome in outcomes {
            let error = outcome.unwrap_err();
            assert!(error.to_string().contains("\"mail\"") && error.to_string().contains(words), "{error}");
            assert!(!error.is_retryable(), "{error:?}");
            kinds.push(error.kind());
        }
        kinds.dedup();
        assert_eq!(kinds.len(), 1, "{record}: {kinds:?}");
        assert!(expected.is_none_or(|kind| kind == kinds[0]), "{record}: {kinds:?}");
        assert!(expected.is_some() || matches!(kinds[0], StateErrorKind::Foreign | StateErrorKind::Damaged));
        assert_eq!(rows(&server), before, "{record}");
        // Other queues are none the worse for it.
        let other = QueueName::new("other").unwrap();
        state.apply(&other, opening(5)).await.unwrap();
        server.psql(&format!("DELETE FROM {TABLE} WHERE name = 'other'"));
    }
    server.psql(&format!("UPDATE {TABLE} SET record = '{good}'"));
    open(&state).await.unwrap();
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_record_that_a_person_edits_is_what_holds() {
    let server = PostgresServer::start();
    let state = connect_patiently(server.url()).await;
    open(&state).await.unwrap();
    Shard::new("a").step(&state, 3).await.unwrap();
    server.psql(&format!(
        "UPDATE {TABLE} SET record = jsonb_set(record::jsonb, '{{interval}}', '500000')::json WHERE name = 'mail'"
    ));
    let record = read(&state).await.unwrap().record;
    assert_eq!(record.interval, Micros::from_millis(500));
    assert_eq!(record.ticket.get(), 3);
    let stepped = Shard::new("b").step(&state, 1).await.unwrap();
    assert_eq!(stepped.taken.unwrap().first.get(), 4);
    assert_eq!(read(&state).await.unwrap().record.interval, Micros::from_millis(500));
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_queue_that_is_taken_away_is_lifted_by_what_shards_remember() {
    let server = PostgresServer::start();
    let state = connect_patiently(server.url()).await;
    for (n, harm) in [
        format!("DELETE FROM {TABLE}"),
        "DROP TABLE interval_queue.interval_queue, interval_queue.interval_queue_schema".to_owned(),
        "DROP SCHEMA interval_queue CASCADE".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        open(&state).await.unwrap();
        let mut shard = Shard::new("a");
        let first = shard.step(&state, 5).await.unwrap().taken.unwrap().first.get();
        server.psql(harm);
        if n == 0 {
            assert_eq!(read(&state).await, None, "{harm}");
        }
        let next = shard.step(&state, 1).await.unwrap().taken.unwrap().first.get();
        assert_eq!(next, first + 5, "{harm}");
        server.psql(harm);
        assert_eq!(state.queues().await.unwrap(), [], "{harm}");
        assert_eq!(read(&state).await, None, "{harm}");
    }
    open(&state).await.unwrap();
    // Of two tables that belong together only one: nobody knows what that is.
    server.psql("DROP TABLE interval_queue.interval_queue");
    assert_eq!(kind(open(&state).await), StateErrorKind::Foreign);
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn schemas_are_separate() {
    let server = server();
    let at = |schema: String| PostgresState::builder(server.url()).schema(schema).connect();
    let (one, other) = (at(someplace()).await.unwrap(), at(someplace()).await.unwrap());
    open(&one).await.unwrap();
    assert_eq!(read(&other).await, None);
    let mut names = ["c", "{x}", "日本", "Z", "a b", "%"].map(|name| QueueName::new(name).unwrap());
    for name in &names {
        other.apply(name, opening(5)).await.unwrap();
    }
    names.sort();
    assert_eq!(other.queues().await.unwrap(), names);
    assert_eq!(one.queues().await.unwrap(), [mail()]);
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_schema_that_somebody_else_made_is_used() {
    let server = PostgresServer::start();
    server.psql("CREATE ROLE pacer LOGIN; CREATE SCHEMA shared AUTHORIZATION pacer; CREATE TABLE shared.orders (id int)");
    let url = server.url().replace("postgres@", "pacer@");
    let state = PostgresState::builder(url).schema("shared").connect().await.unwrap();
    open(&state).await.unwrap();
    assert_eq!(server.psql("SELECT name FROM shared.interval_queue"), ["mail"]);
}

/// Many who come first at the same time, of whom one makes the tables.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn forty_who_connect_at_once_all_find_the_tables() {
    let server = PostgresServer::start();
    for _ in 0..3 {
        let tasks = (0..40).map(|n| {
            let url = server.url().to_owned();
            tokio::spawn(async move {
                let state = PostgresState::builder(url).timeout(LONG).connections(1).connect().await?;
                state.apply(&QueueName::new(format!("{}", n % 4)).unwrap(), opening(5)).await
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap().unwrap();
        }
        assert_eq!(server.psql("SELECT * FROM interval_queue.interval_queue_schema"), ["1"]);
        server.psql("DROP SCHEMA interval_queue CASCADE");
    }
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn connecting_that_is_dropped_makes_all_tables_or_none() {
    let server = PostgresServer::start();
    let mut made = 0;
    for micros in (0..30_000).step_by(300) {
        let connecting = PostgresState::builder(server.url()).timeout(LONG).connect();
        let ended = tokio::time::timeout(std::time::Duration::from_micros(micros), connecting).await;
        until_some(&server, "true", |count| count == 0 || ended.is_ok()).await;
        let tables = server
            .psql("SELECT count(*) FROM pg_class WHERE relname LIKE 'interval_queue%' AND relkind = 'r'");
        let schema = server.psql("SELECT to_regnamespace('interval_queue') IS NOT NULL");
        let all = schema == ["t"];
        assert_eq!(tables, [if all { "2" } else { "0" }], "after {micros} µs");
        if all {
            made += 1;
            connect(server.url()).await;
            server.psql("DROP SCHEMA interval_queue CASCADE");
        }
    }
    connect(server.url()).await;
    println!("made {made} times");
}
