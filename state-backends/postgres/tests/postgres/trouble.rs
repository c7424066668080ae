//! What can happen to a server and to the connection, and that the next command works once it is over.

use crate::{addresses::refused, common::*};

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn nothing_there_is_an_error_at_once() {
    let mut server = PostgresServer::start();
    let state = connect(server.url()).await;
    server.kill();
    let error = PostgresState::connect(server.url()).await.unwrap_err();
    assert_eq!(error.kind(), Unreachable);
    assert!(error.source().is_some());
    assert_eq!(kind(open(&state).await), Unreachable);
}

#[tokio::test]
async fn a_listener_that_says_nothing_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let silent = on(PostgresStore::builder(&through(port)).timeout(TIMEOUT)).await;
    let says = format!("127.0.0.1:{port} in time: the server does not answer");
    refused(silent, Unreachable, &[&says]);
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_restart_between_commands_goes_unnoticed() {
    let (mut server, state) = opened().await;
    tasks_take_tickets(&state, 2, async {}).await;
    assert_eq!(count(&server, "true"), 4, "all connections are there");
    for kill in [false, true, false, true] {
        if kill {
            server.kill();
        } else {
            server.stop();
        }
        server.start_again();
        tasks_take_tickets(&state, 1, async {}).await;
        open(&state).await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_server_that_is_down_is_unreachable_until_it_is_back() {
    let (mut server, state) = opened_impatiently().await;
    server.stop();
    for _ in 0..5 {
        assert_eq!(kind(open(&state).await), Unreachable);
        assert_eq!(kind(state.queues().await), Unreachable);
    }
    server.start_again();
    open(&state).await.unwrap();
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_restart_is_noticed_and_the_next_slot_is_an_interval_away() {
    let (mut server, state) = opened().await;
    let before = read(&state).await.unwrap().record;
    assert_eq!(read(&state).await.unwrap().record.incarnation, before.incarnation);
    server.restart();
    open(&state).await.unwrap();
    let after = read(&state).await.unwrap().record;
    assert_ne!(after.incarnation, before.incarnation);
    assert!(after.free_at > before.free_at + after.interval);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn connections_that_the_server_ends_are_made_again() {
    let (server, state) = opened().await;
    tasks_take_tickets(&state, 50, async {
        for _ in 0..10 {
            server.psql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'interval-queue'",
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// The server ends all its processes then, and begins anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_process_of_the_server_that_crashes_costs_no_ticket() {
    let (server, state) = opened_impatiently().await;
    tasks_take_tickets(&state, 50, async {
        let pid = "SELECT pid FROM pg_stat_activity WHERE application_name = 'interval-queue' LIMIT 1";
        let pid = server.psql(pid).concat();
        // It ends with the others.
        let _ = server.try_psql(&format!("COPY (SELECT 1) TO PROGRAM 'kill -9 {pid}'"));
    })
    .await;
    until_it_works(&state).await;
    assert!(server.log().contains("was terminated by signal 9"), "{}", server.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_server_killed_while_commands_are_under_way() {
    let (mut server, state) = opened_impatiently().await;
    let begun = state.clone();
    tasks_take_tickets(&begun, 50, async {
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            server.restart();
        }
    })
    .await;
    until_it_works(&state).await;
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn too_many_connections_are_unreachable_and_say_why() {
    let settings = [("max_connections", "5"), ("superuser_reserved_connections", "1")];
    let server = PostgresServer::with_settings(&settings);
    server.psql("CREATE ROLE pacer LOGIN; GRANT CREATE ON DATABASE postgres TO pacer");
    let url = server.url().replace("postgres@", "pacer@");
    let state = connect(&url).await;
    open(&state).await.unwrap();
    let mut others = vec![session(&url).await, session(&url).await];
    if let Ok((client, connection)) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await {
        tokio::spawn(connection);
        others.push(client);
    }
    let error = PostgresState::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), Unreachable);
    let source = format!("{:?}", error.source().unwrap());
    assert!(source.contains("53300"), "{source}");
    // What is there is used.
    open(&state).await.unwrap();
    others.clear();
    for _ in 0..600 {
        if server.psql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'pacer'") == ["1"] {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    PostgresState::connect(&url).await.unwrap();
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_server_that_does_not_answer_is_an_error_and_not_a_hang() {
    let (server, state) = opened_impatiently().await;
    server.freeze();
    let begun = clock();
    for _ in 0..3 {
        let kind = kind(open(&state).await);
        assert!(matches!(kind, Unreachable | TimedOut), "{kind:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    server.thaw();
    until_it_works(&state).await;
}

/// A trigger that runs in the commit of each update.
fn in_commit(server: &PostgresServer, does: &str) {
    server.psql(&format!(
        "CREATE FUNCTION in_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {does}; RETURN NULL; END $$"
    ));
    server.psql(&format!(
        "CREATE CONSTRAINT TRIGGER in_commit AFTER UPDATE ON {TABLE} DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION in_commit()"
    ));
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_commit_whose_reply_is_lost_gives_no_ticket_twice() {
    let server = PostgresServer::start();
    let proxy = Proxy::before(server.port());
    let state = connect_patiently(&through(proxy.port())).await;
    open(&state).await.unwrap();
    in_commit(&server, "PERFORM pg_sleep(1)");
    let (mut a, mut b) = (Shard::new("a"), Shard::new("b"));
    for n in 0..2 {
        let mut cut = a.clone();
        let step = tokio::spawn({
            let state = state.clone();
            async move { (cut.step(&state, 2).await, cut) }
        });
        until_one(&server, "wait_event = 'PgSleep'").await;
        proxy.cut();
        let (outcome, back) = step.await.unwrap();
        a = back;
        refused(outcome, TimedOut, &["may have happened"]);
        let taken = (takes(&mut a, &state, 2).await, takes(&mut b, &state, 1).await);
        assert_eq!(taken, (3 * n + 1, 3 * n + 3));
    }
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_commit_that_takes_too_long_gives_no_ticket_twice() {
    let server = PostgresServer::start();
    let state = connect(server.url()).await;
    open(&state).await.unwrap();
    in_commit(&server, &format!("PERFORM pg_sleep({})", 2.0 * TIMEOUT.as_secs_f64()));
    let mut a = Shard::new("a");
    assert_eq!(kind(a.step(&state, 2).await), TimedOut);
    server.psql(&format!("ALTER TABLE {TABLE} DISABLE TRIGGER in_commit"));
    until_it_works(&state).await;
    assert_eq!(takes(&mut a, &state, 2).await, 1);
    assert_eq!(takes(&mut Shard::new("b"), &state, 1).await, 3);
}

/// What the server takes back is tried again, wherever it says so.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn what_the_server_takes_back_is_tried_again() {
    let (server, state) = opened().await;
    // Numbers of a sequence are not taken back.
    let refuse = |code: &str| {
        format!("IF nextval('public.attempts') % 2 = 1 THEN RAISE EXCEPTION USING ERRCODE = '{code}'; END IF")
    };
    server.psql("CREATE SEQUENCE attempts");
    in_commit(&server, &refuse("40001"));
    for code in ["40P01", "40001"] {
        let function = format!(
            "CREATE OR REPLACE FUNCTION in_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {}; RETURN NULL; END $$",
            refuse(code)
        );
        server.psql(&function);
        for n in 0..10 {
            let what = if n % 2 == 0 { Change::Pause } else { Change::Resume };
            change(&state, what, Memory::default()).await.unwrap();
        }
    }
    assert_eq!(server.psql("SELECT last_value FROM attempts"), ["40"]);
    server.psql("ALTER SEQUENCE attempts INCREMENT 2");
    server.psql("SELECT setval('attempts', 41)");
    assert_eq!(kind(open(&state).await), Unreachable, "not for good");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn settings_of_a_database_or_a_user_do_no_harm() {
    let server = PostgresServer::start();
    for setting in [
        "default_transaction_isolation = serializable",
        "default_transaction_deferrable = on",
        "lock_timeout = 1",
        "idle_in_transaction_session_timeout = 1",
        "standard_conforming_strings = off",
        "search_path = pg_temp",
        "DateStyle = 'German'",
        "extra_float_digits = -15",
        "TimeZone = 'Asia/Kathmandu'",
        "quote_all_identifiers = on",
        "bytea_output = escape",
    ] {
        server.psql("ALTER ROLE postgres RESET ALL");
        server.psql(&format!("ALTER ROLE postgres SET {setting}"));
        let store = PostgresStore::builder(server.url()).schema(someplace()).timeout(LONG);
        let state = on(store).await.unwrap();
        open(&state).await.unwrap_or_else(|error| panic!("{setting}: {error:?}"));
        let tasks = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"].map(|id| {
            let state = state.clone();
            tokio::spawn(async move {
                let mut shard = Shard::new(id);
                for _ in 0..5 {
                    shard.step(&state, 1).await.unwrap();
                    read(&state).await.unwrap();
                }
            })
        });
        for task in tasks {
            task.await.unwrap_or_else(|error| panic!("{setting}: {error}"));
        }
        assert_eq!(read(&state).await.unwrap().record.ticket.get(), 60, "{setting}");
        let incarnation = read(&state).await.unwrap().record.incarnation;
        assert!(incarnation.len() > 15, "{setting}: {incarnation}");
    }
    server.psql("ALTER ROLE postgres RESET ALL");
    // Shorter than anything takes.
    server.psql("ALTER ROLE postgres SET statement_timeout = 100");
    let state = connect_patiently(server.url()).await;
    open(&state).await.unwrap();
    server.psql("SET statement_timeout = 0; CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$");
    server
        .psql(&format!("CREATE TRIGGER slow BEFORE UPDATE ON {TABLE} FOR EACH ROW EXECUTE FUNCTION slow()"));
    let error = open(&state).await.unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_session_that_ends_when_it_is_idle_is_made_again() {
    if server().psql("SELECT current_setting('server_version_num')::int >= 140000") == ["f"] {
        return;
    }
    let server = PostgresServer::with_settings(&[("idle_session_timeout", "100")]);
    let state = connect_patiently(server.url()).await;
    for _ in 0..5 {
        open(&state).await.unwrap();
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
}

/// Something that takes away each row as it comes, which nobody should do.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_row_that_cannot_be_stored_is_an_error_and_not_a_hang() {
    let (server, state) = opened_impatiently().await;
    server.psql("CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$");
    server.psql(&format!(
        "CREATE TRIGGER no BEFORE INSERT OR UPDATE ON {TABLE} FOR EACH ROW EXECUTE FUNCTION no()"
    ));
    let outcome = tokio::time::timeout(LONG / 4, open(&state)).await;
    assert_eq!(kind(outcome.unwrap()), Denied);
}
