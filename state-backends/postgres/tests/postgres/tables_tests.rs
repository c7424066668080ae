//! The tables: who may make them, whose they may be, and how they come to a newer version.

use interval_queue_store::Component;

use crate::{addresses::refused, common::*};

const PACE: Component = Component {
    name: "interval_queue",
    first: 1,
    migrations: &[include_str!("../../src/pace/migrations/1.sql")],
    declared: String::new,
    grants: "USAGE and SELECT",
};
/// With a second version.
const NEXT: Component = Component {
    migrations: &[
        PACE.migrations[0],
        "ALTER TABLE interval_queue ADD COLUMN colour text NOT NULL DEFAULT 'red';",
    ],
    ..PACE
};

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_user_without_create_rights_needs_an_owner_and_grants() {
    let server = PostgresServer::start();
    server.psql("CREATE ROLE pacer LOGIN");
    let url = server.url().replace("postgres@", "pacer@");
    let before = everything(&server);
    let words = [
        "user \"pacer\"",
        "schema \"interval_queue\"",
        "database \"postgres\"",
        "let an owner open a queue once",
        "USAGE",
        "SELECT, INSERT, UPDATE, DELETE",
    ];
    refused(open(&connect(&url).await).await, Denied, &words);
    assert_eq!(everything(&server), before);
    let owner = connect(server.url()).await;
    assert_eq!((read(&owner).await, owner.queues().await.unwrap()), (None, vec![]));
    assert_eq!(everything(&server), before, "a look makes nothing");
    open(&owner).await.unwrap();
    refused(PostgresState::connect(&url).await, Denied, &["user \"pacer\"", "USAGE"]);
    let documentation = include_str!("../../src/lib.rs");
    // Those of stored tasks come behind.
    let documentation = documentation.lines().take_while(|line| *line != "//! # Stored tasks");
    let grants: Vec<_> = documentation.filter_map(|line| line.strip_prefix("//! GRANT ")).collect();
    assert_eq!(grants.len(), 3);
    // None of them can be spared.
    for (n, grant) in grants.iter().enumerate() {
        if n == 2 {
            let state = connect(&url).await;
            assert_eq!(kind(open(&state).await), Denied);
            assert_eq!(kind(state.apply(&mail(), Command::Read).await), Denied);
        } else {
            refused(PostgresState::connect(&url).await, Denied, &["user \"pacer\"", "USAGE"]);
        }
        server.psql(&format!("GRANT {grant}"));
    }
    let state = connect(&url).await;
    open(&state).await.unwrap();
    Shard::new("a").step(&state, 2).await.unwrap();
    Shard::new("b").step(&state, 2).await.unwrap();
    assert_eq!(read(&owner).await.unwrap().record.ticket.get(), 4);
    assert_eq!(state.queues().await.unwrap(), [mail()]);
    drop(state.changes(&mail()).await.unwrap());
    // When the tables go, an owner has to make them again.
    server.psql("DROP SCHEMA interval_queue CASCADE");
    refused(open(&state).await, Denied, &["owner"]);
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn tables_that_are_not_ours_are_left_as_they_are() {
    let server = PostgresServer::start();
    let ours = "CREATE TABLE place.interval_queue (name text PRIMARY KEY, record json NOT NULL);";
    let versions = |has: &str| {
        format!(
            "CREATE TABLE place.interval_queue_schema (version integer); INSERT INTO place.interval_queue_schema {has};"
        )
    };
    let make = |tables: &str| {
        server.psql("DROP SCHEMA IF EXISTS place CASCADE");
        server.psql("CREATE SCHEMA place");
        server.psql(tables);
    };
    let at_place = || on(PostgresStore::builder(server.url()).schema("place"));
    for (tables, kind, words) in [
        (format!("{ours}{}", versions("VALUES (7)")), NewerVersion, "version 7"),
        (format!("{ours}{}", versions("VALUES (0)")), Foreign, "version from 1"),
        (format!("{ours}{}", versions("VALUES (-1)")), Foreign, "version from 1"),
        (format!("{ours}{}", versions("VALUES (NULL)")), Foreign, "version from 1"),
        (format!("{ours}{}", versions("VALUES (1), (1)")), Foreign, "one row"),
        (format!("{ours}{}", versions("SELECT 1 WHERE false")), Foreign, "one row"),
        (
            ours.to_owned(),
            Foreign,
            "\"place\" of database \"postgres\" has a table interval_queue that is not",
        ),
        (versions("VALUES (1)"), Damaged, "has no table interval_queue any more"),
        (
            format!("{ours} CREATE TABLE place.interval_queue_schema (colour text)"),
            Foreign,
            "choose another schema",
        ),
        (
            format!(
                "{ours} CREATE TABLE place.interval_queue_schema (version text); INSERT INTO place.interval_queue_schema VALUES ('red')"
            ),
            Unsupported,
            "",
        ),
        ("CREATE VIEW place.interval_queue AS SELECT 1 AS colour".to_owned(), Foreign, "is not of this"),
    ] {
        make(&tables);
        let before = everything(&server);
        refused(at_place().await, kind, &[words]);
        assert_eq!(everything(&server), before);
    }
    // One that looks like ours from afar.
    make(&format!("CREATE TABLE place.interval_queue (colour text); {}", versions("VALUES (1)")));
    let state = at_place().await.unwrap();
    refused(open(&state).await, Foreign, &["choose another schema"]);
    assert_eq!(kind(state.queues().await), Foreign);
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_schema_that_somebody_else_made_is_used() {
    let server = PostgresServer::start();
    server.psql("CREATE ROLE pacer LOGIN; CREATE SCHEMA shared AUTHORIZATION pacer; CREATE TABLE shared.orders (id int)");
    let url = server.url().replace("postgres@", "pacer@");
    let state = on(PostgresStore::builder(&url).schema("shared")).await.unwrap();
    open(&state).await.unwrap();
    assert_eq!(server.psql("SELECT name FROM shared.interval_queue"), ["mail"]);
}

/// Many come first at the same time, and one of them makes the tables.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn forty_that_connect_at_once_all_find_the_tables() {
    let server = PostgresServer::start();
    for _ in 0..3 {
        let tasks = (0..40).map(|n| {
            let store = PostgresStore::builder(server.url()).timeout(LONG).connections(1);
            tokio::spawn(async move {
                let queue = QueueName::new(format!("{}", n % 4)).unwrap();
                on(store).await?.apply(&queue, opening(5)).await
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
async fn a_first_command_that_is_dropped_makes_all_tables_or_none() {
    let server = PostgresServer::start();
    let state = connect_patiently(server.url()).await;
    for micros in (0..30_000).step_by(1_000) {
        let ended = tokio::time::timeout(Duration::from_micros(micros), open(&state)).await;
        until_some(&server, "state <> 'idle'", |count| count == 0 || ended.is_ok()).await;
        let tables = server
            .psql("SELECT count(*) FROM pg_class WHERE relname LIKE 'interval_queue%' AND relkind = 'r'");
        let all = server.psql("SELECT to_regnamespace('interval_queue') IS NOT NULL") == ["t"];
        assert_eq!(tables, [if all { "2" } else { "0" }], "after {micros} µs");
        if all {
            open(&state).await.unwrap();
            server.psql("DROP SCHEMA interval_queue CASCADE");
        }
    }
    open(&state).await.unwrap();
}

/// The store in the schema `place`, for a user.
async fn store(server: &PostgresServer, user: &str) -> PostgresStore {
    let url = server.url().replace("postgres@", &format!("{user}@"));
    PostgresStore::builder(&url).schema("place").timeout(LONG).connect().await.unwrap()
}

fn version(server: &PostgresServer) -> Vec<String> {
    server.psql("SELECT version FROM place.interval_queue_schema")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn ten_concurrent_migrations_run_once_for_each_component() {
    let server = PostgresServer::start();
    let state = PostgresState::on(&store(&server, "postgres").await).await.unwrap();
    open(&state).await.unwrap();
    let tasks = (0..10).map(|_| {
        let store = store(&server, "postgres");
        async { store.await.migrate(&NEXT).await }
    });
    for outcome in futures::future::join_all(tasks).await {
        outcome.unwrap();
    }
    assert_eq!(version(&server), ["2"]);
    assert_eq!(server.psql("SELECT name || colour FROM place.interval_queue"), ["mailred"]);
    refused(
        PostgresState::on(&store(&server, "postgres").await).await,
        NewerVersion,
        &["\"place\"", "version 2", "upgrade"],
    );
    const COLOURS: Component = Component {
        name: "colours",
        first: 1,
        migrations: &["CREATE TABLE colours (id int); CREATE TABLE colours_schema AS SELECT 1 AS version;"],
        declared: String::new,
        grants: "",
    };
    store(&server, "postgres").await.migrate(&COLOURS).await.unwrap();
    assert_eq!(server.psql("SELECT version FROM place.colours_schema"), ["1"]);
    assert_eq!(version(&server), ["2"]);
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_migration_that_fails_or_is_not_permitted_changes_nothing() {
    const BAD: [Component; 2] = [
        Component { migrations: &[PACE.migrations[0], "CREATE TABLE more (id int); SELECT 1 / 0;"], ..PACE },
        Component { migrations: &[PACE.migrations[0], "CREATE TABLE more (id int); COLOUR;"], ..PACE },
    ];
    let server = PostgresServer::start();
    let owner = store(&server, "postgres").await;
    owner.migrate(&PACE).await.unwrap();
    for bad in BAD {
        owner.migrate(&bad).await.unwrap_err();
        assert_eq!(version(&server), ["1"]);
        assert_eq!(server.psql("SELECT to_regclass('place.more') IS NULL"), ["t"]);
    }
    owner.migrate(&PACE).await.unwrap();
    server.psql("CREATE ROLE pacer LOGIN; GRANT USAGE ON SCHEMA place TO pacer");
    server.psql("GRANT SELECT ON ALL TABLES IN SCHEMA place TO pacer");
    let words = ["\"pacer\"", "\"place\"", "version 1", "needs 2", "owner"];
    refused(store(&server, "pacer").await.migrate(&NEXT).await, Denied, &words);
    assert_eq!(version(&server), ["1"]);
}
