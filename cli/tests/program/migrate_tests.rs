//! `migrate`: the tables of a store, made or printed before they are used.

use interval_queue_test_support::PostgresServer;

use crate::{place_tests::Backend, process::text};

/// Standard error of a run that ends well and prints nothing.
fn says(place: &Backend, args: &[&str]) -> String {
    let output = place.run(args);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    text(&output.stderr).to_owned()
}

#[test]
fn tables_of_sqlite_are_printed_or_made() {
    let place = Backend::sqlite();
    let sql = place.ok(&["migrate", "--print"]);
    assert!(!place.path("data/queues.db").exists(), "printing makes nothing");
    let other = place.path("printed.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch(&sql).unwrap();
    let other = format!("sqlite:{}", other.display());
    assert!(says(&place, &["migrate", "--store", &other]).contains("nothing to do: the tables in sqlite:"));
    assert!(says(&place, &["migrate"]).contains("created the tables in sqlite:"));
    for args in [&["migrate"][..], &["migrate", "--print"]] {
        assert!(says(&place, args).contains("are up to date"));
    }
    for url in [&place.url(), &other] {
        place.ok(&["add", "--store", url, "1"]);
        place.ok(&["run", "--store", url, "--every", "1ms", "true"]);
    }
}

#[test]
fn a_store_without_tables_has_nothing_to_do() {
    let place = Backend::file();
    let directory = format!("dir:{}", place.path("jobs").display());
    for url in [&place.url(), &directory] {
        for args in [&["migrate", "--store", url][..], &["migrate", "--print", "--store", url]] {
            let said = says(&place, args);
            assert!(said.contains("nothing to do: ") && said.contains("has no SQL tables"), "{said}");
        }
    }
    assert!(place.files().is_empty());
}

#[test]
#[ignore = "needs postgresql: scripts/test runs it"]
fn tables_of_postgres_are_printed_or_made() {
    let (place, server) = (Backend::file(), PostgresServer::start());
    server.psql("CREATE ROLE app LOGIN");
    let (owner, app) = (server.url(), &*server.url().replace("postgres@", "app@"));
    let sql = place.ok(&["migrate", "--print", "--store", app]);
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'interval_queue'";
    assert_eq!(server.psql(schemas), ["0"], "printing makes nothing");
    let refused = place.run(&["migrate", "--store", app]);
    assert_eq!(refused.status.code(), Some(77), "{refused:?}");
    assert!(text(&refused.stderr).contains("let an owner open a queue once"), "{refused:?}");
    server.psql(&sql);
    assert!(says(&place, &["migrate", "--store", owner]).contains("are up to date"));
    assert_eq!(server.psql("SELECT interval_queue.add_task('mail') IS NOT NULL"), ["t"]);
    server.psql("DROP SCHEMA interval_queue CASCADE");
    assert!(says(&place, &["migrate", "--store", owner]).contains("created the tables in postgres://"));
    assert!(says(&place, &["migrate", "--print", "--store", owner]).contains("are up to date"));
    place.ok(&["add", "--store", owner, "1"]);
    place.ok(&["run", "--store", owner, "--every", "1ms", "true"]);
}
