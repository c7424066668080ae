//! What is refused before anything is stored: addresses, servers, databases, rights. No error has a password
//! in it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::error::Error;

use common::*;
use interval_queue_contract::{
    Command, QueueName, SharedState, StateError,
    StateErrorKind::{self, Denied, Foreign, Invalid, NewerVersion, NotFound, Unreachable, Unsupported},
};
use interval_queue_postgres::{Builder, PostgresState};
use interval_queue_test_support::PostgresServer;

/// Checks the kind, and that all these words are said and none of a password.
fn refused<T: std::fmt::Debug>(outcome: Result<T, StateError>, kind: StateErrorKind, words: &[&str]) {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), kind, "{error:?}");
    let mut all = format!("{error:?}");
    let mut cause: Option<&dyn Error> = Some(&error);
    while let Some(error) = cause {
        all += &format!(" {error}");
        cause = error.source();
    }
    assert!(!all.contains("hunter") && !all.contains("s3cret"), "{all}");
    let text = error.to_string();
    assert!(
        !text.contains('\n') && text.chars().next().is_some_and(|c| !c.is_uppercase() || c == 'P'),
        "{text}"
    );
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

/// All schemas and tables, with what is in ours.
fn everything(server: &PostgresServer) -> Vec<String> {
    server.psql(
        "SELECT nspname, relname, relkind FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid \
         WHERE nspname NOT LIKE 'pg_%' AND nspname <> 'information_schema' ORDER BY 1, 2",
    )
}

#[tokio::test]
async fn an_address_that_cannot_be_used_says_how_it_would_be_right() {
    for (url, words) in [
        ("mysql://root:hunter2@localhost/x", &["postgres://"][..]),
        ("host=localhost password=hunter2", &["postgres://"]),
        ("", &["postgres://"]),
        ("postgres://", &["no host", "?host="]),
        ("postgres:///app", &["no host", "?host="]),
        ("postgres://ann:hunter2@/app", &["no host"]),
        ("postgres://ann:hunter2@localhost:port/app", &["port", "%-encoding"]),
        ("postgres://ann:hunter2@localhost/app?colour=s3cret", &["colour"]),
        ("postgres://ann:hunter2@localhost/app?connect_timeout=s3cret", &["connect_timeout"]),
        ("postgres://ann:hunter2@localhost/app?target_session_attrs=s3cret", &["target_session_attrs"]),
        ("postgres://ann:hunter2@localhost/app?colour", &["unterminated parameter"]),
        ("postgres://ann:s3@hunter2@localhost/app", &["%40"]),
        ("postgres://ann:s3?hunter2@localhost/app", &["%3F"]),
        ("postgres://ann:12/hunter2@localhost/app", &["%2F"]),
        ("postgres://ann:s3?hunter2=x&sslmode=disable@localhost/app", &["%3F"]),
        ("postgres://localhost/app?password=hunter2@x", &["%40"]),
        ("postgres://ann:hunter2@localhost/app?sslmode=whatever", &["sslmode=whatever", "verify-full"]),
        ("postgres://ann:hunter2@localhost/%FF", &["UTF-8", "utf-8"]),
    ] {
        let error = PostgresState::connect(url).await.unwrap_err();
        let (text, kind) = (error.to_string(), error.kind());
        assert!(words.iter().any(|word| text.contains(word)), "{url}: {text}");
        if !url.ends_with("%FF") {
            refused(Err::<(), _>(error), Invalid, words);
        }
        assert_eq!(kind, Invalid, "{url}");
    }
    let builder = PostgresState::builder("postgres://ann:hunter2@localhost/app");
    assert!(!format!("{builder:?}").contains("hunter"), "{builder:?}");
}

#[cfg(not(feature = "tls"))]
#[tokio::test]
async fn encryption_that_is_not_there_is_refused() {
    for mode in ["require", "verify-ca", "verify-full"] {
        let url = format!("postgres://ann:hunter2@localhost/app?sslmode={mode}");
        refused(PostgresState::connect(url).await, Invalid, &[mode, "postgres-tls"]);
    }
}

#[tokio::test]
async fn a_setting_that_cannot_be_used_names_what_can() {
    let at = || PostgresState::builder("postgres://ann:hunter2@localhost/app");
    let long = "x".repeat(64);
    for (builder, words) in [
        (at().schema(""), &["63 bytes"][..]),
        (at().schema(&long), &[&long, "63 bytes"]),
        (at().schema("ä".repeat(32)), &["63 bytes"]),
        (at().schema("a\nb"), &["printable"]),
        (at().schema("a\0b"), &["printable"]),
        (at().schema("pg_x"), &["pg_x"]),
        (at().connections(0), &["connections 0", "1 to 1000"]),
        (at().connections(1_001), &["connections 1001"]),
        (at().timeout(std::time::Duration::ZERO), &["timeout 0ns", "100ms"]),
    ] {
        refused(builder.connect().await, Invalid, words);
    }
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_server_that_refuses_is_named_by_what_would_help() {
    let server = PostgresServer::with_password("s3cret");
    let before = everything(&server);
    let at = |user: &str, database: &str| format!("postgres://{user}@127.0.0.1:{}/{database}", server.port());
    refused(PostgresState::connect(at("tester:hunter2", "postgres")).await, Denied, &["password"]);
    refused(PostgresState::connect(at("tester", "postgres")).await, Invalid, &["password missing"]);
    refused(PostgresState::connect(at("nobody:hunter2", "postgres")).await, Denied, &["user"]);
    refused(
        PostgresState::connect(at("tester:s3cret", "nowhere")).await,
        NotFound,
        &["database", "create it"],
    );
    assert_eq!(everything(&server), before);
    let state = PostgresState::connect(at("tester:s3cret", "postgres")).await.unwrap();
    assert!(!format!("{state:?}").contains("s3cret"), "{state:?}");
    open(&state).await.unwrap();
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_user_without_the_right_to_make_tables_needs_an_owner_and_three_grants() {
    let server = PostgresServer::start();
    server.psql("CREATE ROLE pacer LOGIN");
    let url = server.url().replace("postgres@", "pacer@");
    let before = everything(&server);
    refused(
        open(&connect(&url).await).await,
        Denied,
        &[
            "user \"pacer\"",
            "schema \"interval_queue\"",
            "database \"postgres\"",
            "let an owner open a queue once",
            "USAGE",
            "SELECT, INSERT, UPDATE",
        ],
    );
    assert_eq!(everything(&server), before);
    let owner = connect(server.url()).await;
    assert_eq!((read(&owner).await, owner.queues().await.unwrap()), (None, vec![]));
    assert_eq!(everything(&server), before, "who looks makes nothing");
    open(&owner).await.unwrap();
    refused(PostgresState::connect(&url).await, Denied, &["user \"pacer\"", "USAGE"]);
    let documentation = include_str!("../src/lib.rs");
    let grants: Vec<_> = documentation.lines().filter_map(|line| line.strip_prefix("//! GRANT ")).collect();
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
    let error = open(&state).await.unwrap_err();
    assert_eq!(error.kind(), Denied);
    assert!(error.to_string().contains("owner"), "{error}");
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn tables_that_are_not_ours_are_left_as_they_are() {
    let server = PostgresServer::start();
    let ours = "CREATE TABLE place.interval_queue (name text PRIMARY KEY, record json NOT NULL);";
    let versions = "CREATE TABLE place.interval_queue_schema (version integer NOT NULL);";
    for (tables, kind, words) in [
        (
            format!("{ours}{versions} INSERT INTO place.interval_queue_schema VALUES (7)"),
            NewerVersion,
            "version 7",
        ),
        (
            format!("{ours}{versions} INSERT INTO place.interval_queue_schema VALUES (0)"),
            Foreign,
            "version from 1",
        ),
        (
            format!("{ours}{versions} INSERT INTO place.interval_queue_schema VALUES (-1)"),
            Foreign,
            "version from 1",
        ),
        (
            format!("{ours}{versions} INSERT INTO place.interval_queue_schema VALUES (1), (1)"),
            Foreign,
            "one row",
        ),
        (format!("{ours}{versions}"), Foreign, "one row"),
        (ours.to_owned(), Foreign, "only one of the two tables"),
        (versions.to_owned(), Foreign, "only one of the two tables"),
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
        ("CREATE VIEW place.interval_queue AS SELECT 1 AS colour".to_owned(), Foreign, "only one"),
    ] {
        server.psql("DROP SCHEMA IF EXISTS place CASCADE");
        server.psql("CREATE SCHEMA place");
        server.psql(&tables);
        let before = everything(&server);
        refused(PostgresState::builder(server.url()).schema("place").connect().await, kind, &[words]);
        assert_eq!(everything(&server), before);
    }
    // One that looks like ours from afar.
    server.psql("DROP SCHEMA place CASCADE");
    server.psql("CREATE SCHEMA place");
    server.psql(&format!("CREATE TABLE place.interval_queue (colour text); {versions} INSERT INTO place.interval_queue_schema VALUES (1)"));
    let state = PostgresState::builder(server.url()).schema("place").connect().await.unwrap();
    let error = open(&state).await.unwrap_err();
    assert_eq!(error.kind(), Foreign);
    assert!(error.to_string().contains("choose another schema"), "{error}");
    assert_eq!(kind(state.queues().await), Foreign);
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_server_that_is_only_read_names_the_way_out() {
    let primary = PostgresServer::start();
    let standby = PostgresServer::standby_of(&primary);
    refused(
        PostgresState::connect(standby.url()).await,
        Denied,
        &["target_session_attrs=read-write", "\"postgres\""],
    );
    open(&connect(primary.url()).await).await.unwrap();
    standby.wait_until("it has the tables", |standby| {
        standby.psql("SELECT to_regclass('interval_queue.interval_queue_schema')")
            == ["interval_queue.interval_queue_schema"]
    });
    refused(PostgresState::connect(standby.url()).await, Denied, &["target_session_attrs=read-write"]);

    primary.psql("DROP SCHEMA interval_queue CASCADE");
    primary.psql("CREATE DATABASE quiet");
    primary.psql("ALTER DATABASE quiet SET default_transaction_read_only = on");
    let quiet = database(&primary, "quiet");
    refused(PostgresState::connect(&quiet).await, Denied, &["\"quiet\"", "default_transaction_read_only"]);
    primary.psql("ALTER DATABASE quiet RESET default_transaction_read_only");
    let state = connect(&quiet).await;
    primary.psql("ALTER DATABASE quiet SET default_transaction_read_only = on");
    primary.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'quiet'");
    assert_eq!(kind(open(&state).await), Unreachable);
    refused(PostgresState::connect(&quiet).await, Denied, &["default_transaction_read_only"]);
    primary.psql("ALTER DATABASE quiet RESET default_transaction_read_only");
    until_it_works(&state).await;
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_database_that_cannot_hold_every_name_is_refused() {
    let server = server();
    server.psql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    let url = database(&server, "latin");
    refused(PostgresState::connect(url).await, Unsupported, &["\"latin\"", "LATIN1", "UTF8"]);
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn names_are_taken_as_they_are() {
    let server = PostgresServer::start();
    let names = [
        "we\"ird Schéma",
        "a'b",
        "back\\slash",
        "100%",
        "日本語",
        "'; DROP TABLE x; --",
        "$1",
        "UPPER",
        "a.b",
        " ",
        "E'x'",
    ];
    for name in names {
        let (name_quoted, encoded) = (name.replace('"', "\"\""), percent_encoded(name));
        server.psql(&format!("CREATE ROLE \"{name_quoted}\" LOGIN"));
        server.psql(&format!("CREATE DATABASE \"{name_quoted}\" OWNER \"{name_quoted}\""));
        let url = format!("postgres://{encoded}@127.0.0.1:{}/{encoded}", server.port());
        let at =
            |settings: fn(Builder) -> Builder| settings(PostgresState::builder(&url).schema(name)).connect();
        let (state, other) = (at(|b| b).await.unwrap(), at(|b| b.connections(1)).await.unwrap());
        let queue = QueueName::new(name.trim().to_owned() + "q").unwrap();
        let mut changes = state.changes(&queue).await.unwrap();
        other.apply(&queue, opening(5)).await.unwrap();
        let told = tokio::time::timeout(LONG, futures::StreamExt::next(&mut changes)).await;
        told.unwrap().unwrap_or_else(|| panic!("{name}: the stream ended"));
        assert!(state.apply(&queue, Command::Read).await.unwrap().read().unwrap().is_some());
        assert_eq!(state.queues().await.unwrap(), [queue]);
    }
    server.psql("CREATE ROLE \"no one's\" LOGIN");
    let url = format!(
        "postgres://{}@127.0.0.1:{}/{}",
        percent_encoded("no one's"),
        server.port(),
        percent_encoded(names[0])
    );
    let denied = PostgresState::builder(url).schema(names[0]).connect().await;
    refused(denied, Denied, &["\"no one's\"", "\"we\"\"ird Schéma\""]);
}

fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
