//! What the program does as it opens a store, and as it closes it: an SQLite database is whole in its one file then.

use std::fs;

use interval_queue_test_support::RedisServer;

use crate::place_tests::Backend;

/// What a copy of the database file alone has, in which the queue is looked at with these arguments.
fn in_copy(place: &Backend, args: &[&str]) -> String {
    fs::copy(place.path("data/queues.db"), place.path("copy.db")).unwrap();
    let mut command = place.command(args);
    let output = command.env("INTERVAL_QUEUE_STORE", "sqlite:copy.db").output().unwrap();
    assert!(output.status.success(), "{args:?} in the copy: {output:?}");
    fs::remove_file(place.path("copy.db")).unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn has_log(place: &Backend) -> bool {
    place.path("data/queues.db-wal").exists()
}

#[test]
#[ignore = "needs redis-server: scripts/test runs it"]
fn a_server_that_evicts_is_warned_of_once() {
    let place = Backend::file();
    let server = RedisServer::with_args(&["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"]);
    let output = place.command(&["list"]).env("INTERVAL_QUEUE_STORE", server.url()).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.matches("maxmemory-policy noeviction").count(), 1, "{stderr}");
}

#[test]
fn a_copy_of_the_database_file_has_what_add_and_work_stored() {
    let place = Backend::sqlite();
    let id = place.ok(&["add", "1"]);
    assert!(!has_log(&place), "add has closed the database");
    assert!(in_copy(&place, &["tasks", "list"]).contains(id.trim()));
    place.ok(&["work", "--until-empty", "--", "cat"]);
    assert!(!has_log(&place), "work has closed the database");
    assert!(in_copy(&place, &["tasks", "show", id.trim()]).contains("done"));
}

#[test]
fn a_copy_of_the_database_file_has_what_run_and_each_stored() {
    let place = Backend::sqlite();
    // It becomes the command, and is the process that has opened the database.
    place.ok(&["run", "--every", "1ms", "--", "true"]);
    assert!(!has_log(&place), "run has closed the database");
    assert!(in_copy(&place, &["list"]).contains("mail"));
    place.ok(&["run", "--timeout", "1m", "--", "true"]);
    assert!(!has_log(&place), "run has closed the database after its child");
    let each = place.shell("seq 3 | $IQ each -- true").finish();
    assert!(each.status.success() && !has_log(&place), "{each:?}");
}
