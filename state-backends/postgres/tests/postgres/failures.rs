//! What can happen to a server and to the connection, and that the next command works once it is over.

use interval_queue_contract::Record;

use crate::{addresses::refused, common::*};

#[tokio::test]
async fn a_listener_that_says_nothing_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let silent = on(PostgresStore::builder(&through(port)).timeout(TIMEOUT)).await;
    let says = format!("127.0.0.1:{port} in time: the server does not answer");
    refused(silent, Unreachable, &[&says]);
}

#[tokio::test]
async fn another_server_gets_another_error_than_one_that_is_down() {
    for (mode, says) in [
        ("disable", &b"R\0\0\0\x05abcdefg"[..]),
        ("disable", b"H\0\0\0\x01TP/1.1 400"),
        ("disable", b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        #[cfg(feature = "tls")]
        ("prefer", b"NH\0\0\0\x01TP/1.1 400"),
        #[cfg(feature = "tls")]
        ("prefer", b"SSH-2.0-OpenSSH_9.2p1\r\n"),
        #[cfg(feature = "tls")]
        ("require", b"SSH-2.0-OpenSSH_9.2p1\r\n"),
    ] {
        let port = stranger(says);
        let address = format!("{}?sslmode={mode}", through(port));
        // Some of these bytes are the beginning of a message that does not end.
        let place = format!("what answers at 127.0.0.1:{port} ");
        refused(PostgresState::connect(&address).await, Unreachable, &[&place, "check host and port"]);
    }
}

#[tokio::test]
async fn a_server_has_the_time_to_connect_that_the_url_says() {
    let port = stranger(b"");
    for (timeouts, most) in [("connect_timeout=1&timeout=1h", 30), ("connect_timeout=3600&timeout=500ms", 30)]
    {
        let begun = Instant::now();
        let silent = PostgresStore::connect(&format!("{}?{timeouts}", through(port))).await;
        refused(silent, Unreachable, &["in time: the server does not answer"]);
        assert!(begun.elapsed() < Duration::from_secs(most), "{timeouts}");
    }
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_read_takes_one_round_trip_and_a_command_two() {
    let (server, _) = opened().await;
    let proxy = Proxy::before(server.port());
    let state = connect_patiently(&through(proxy.port())).await;
    let way = Duration::from_secs(1);
    proxy.delay(way, way);
    for (command, trips) in [(Command::Read, 1), (opening(5), 2)] {
        // On a busy host what is sent at once may come in two parts, which the proxy delays one by one.
        let mut quickest = Duration::MAX;
        for _ in 0..5 {
            let begun = Instant::now();
            state.apply(&mail(), command.clone()).await.unwrap();
            quickest = quickest.min(begun.elapsed());
            if quickest < way * 2 * (trips + 1) {
                break;
            }
        }
        assert!((way * 2 * trips..way * 2 * (trips + 1)).contains(&quickest), "{trips} take {quickest:?}");
    }
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_server_that_is_down_is_unreachable_until_it_is_back() {
    let (mut server, state) = opened().await;
    for kill in [true, false] {
        if kill {
            server.kill()
        } else {
            server.stop()
        }
        for _ in 0..5 {
            assert_eq!(kind(open(&state).await), Unreachable);
            assert_eq!(kind(state.queues().await), Unreachable);
        }
        let error = PostgresState::connect(server.url()).await.unwrap_err();
        assert_eq!((error.kind(), error.source().is_some()), (Unreachable, true));
        server.start_again();
        open(&state).await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn after_a_restart_the_next_slot_is_an_interval_away() {
    let (mut server, state) = opened().await;
    let before = read(&state).await.unwrap().record;
    assert_eq!(read(&state).await.unwrap().record.incarnation, before.incarnation);
    server.restart();
    open(&state).await.unwrap();
    let after = read(&state).await.unwrap().record;
    assert_ne!(after.incarnation, before.incarnation);
    assert!(after.next_slot(1) > before.next_slot(1) + after.interval());
    tasks_take_tickets(&state, 2, async {}).await;
    assert_eq!(count(&server, "true"), 4, "all connections are there");
    for kill in [false, true, false, true] {
        if kill {
            server.kill()
        } else {
            server.stop()
        }
        server.start_again();
        tasks_take_tickets(&state, 1, async {}).await;
        open(&state).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn harm_to_the_server_during_commands_loses_no_ticket() {
    const OURS: &str = "FROM pg_stat_activity WHERE application_name = 'interval-queue'";
    let (mut server, state) = opened().await;
    for harm in ["its connections end", "one of its processes crashes", "it is restarted"] {
        tasks_take_tickets(&state, 50, async {
            match harm {
                "its connections end" => {
                    for _ in 0..10 {
                        server.psql(&format!("SELECT pg_terminate_backend(pid) {OURS}"));
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }
                "one of its processes crashes" => {
                    let pid = server.psql(&format!("SELECT pid {OURS} LIMIT 1")).concat();
                    // All others end with it, this one too.
                    let _ = server.try_psql(&format!("COPY (SELECT 1) TO PROGRAM 'kill -9 {pid}'"));
                }
                _ => {
                    for _ in 0..3 {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        server.restart();
                    }
                }
            }
        })
        .await;
        until_it_works(&state).await;
    }
    assert!(server.log().contains("was terminated by signal 9"), "{}", server.log());
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
    let begun = Instant::now();
    for _ in 0..3 {
        let kind = kind(open(&state).await);
        assert!(matches!(kind, Unreachable | TimedOut), "{kind:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    server.thaw();
    until_it_works(&state).await;
}

/// In the commit of each update.
const IN_COMMIT: &str =
    "CONSTRAINT TRIGGER hook AFTER UPDATE ON interval_queue.interval_queue DEFERRABLE INITIALLY DEFERRED";
/// Before a row is stored.
const BEFORE: &str = "TRIGGER hook BEFORE INSERT OR UPDATE ON interval_queue.interval_queue";

/// The server does something then, instead of what it did before.
fn hook(server: &PostgresServer, when: &str, does: &str) {
    server.psql(&format!(
        "SET statement_timeout = 0; DROP FUNCTION IF EXISTS hook CASCADE; \
         CREATE FUNCTION hook() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {does}; RETURN NULL; END $$; \
         CREATE {when} FOR EACH ROW EXECUTE FUNCTION hook()"
    ));
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_commit_that_gets_no_answer_gives_no_ticket_twice() {
    let (server, _) = opened().await;
    let proxy = Proxy::before(server.port());
    let state = connect_patiently(&through(proxy.port())).await;
    hook(&server, IN_COMMIT, "PERFORM pg_sleep(1)");
    let (mut a, mut b) = (Shard::new("a"), Shard::new("b"));
    for n in 0..2 {
        let mut cut = a.clone();
        let step = tokio::spawn({
            let state = state.clone();
            async move { (cut.step(&state, 2).await, cut) }
        });
        until_some(&server, "wait_event = 'PgSleep'", |count| count > 0).await;
        proxy.cut();
        let (outcome, back) = step.await.unwrap();
        a = back;
        refused(outcome, TimedOut, &["may have happened"]);
        let taken = (takes(&mut a, &state, 2).await, takes(&mut b, &state, 1).await);
        assert_eq!(taken, (3 * n + 1, 3 * n + 3));
    }
    let impatient = connect_impatiently(server.url()).await;
    hook(&server, IN_COMMIT, &format!("PERFORM pg_sleep({})", 2.0 * TIMEOUT.as_secs_f64()));
    assert_eq!(kind(a.step(&impatient, 2).await), TimedOut);
    server.psql("DROP FUNCTION hook CASCADE");
    let state = connect(server.url()).await;
    until_it_works(&state).await;
    assert_eq!((takes(&mut a, &state, 2).await, takes(&mut b, &state, 1).await), (7, 9));
}

/// What the server takes back is tried again, wherever it says so.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn commands_that_the_server_rolls_back_are_retried() {
    let (server, state) = opened().await;
    // Numbers of a sequence are not taken back.
    let refuse = |code: &str| {
        format!("IF nextval('public.attempts') % 2 = 1 THEN RAISE EXCEPTION USING ERRCODE = '{code}'; END IF")
    };
    server.psql("CREATE SEQUENCE attempts");
    for code in ["40P01", "40001"] {
        hook(&server, IN_COMMIT, &refuse(code));
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
        "idle_session_timeout = 100",
    ] {
        if setting.starts_with("idle_session") && *server.psql("SHOW server_version_num").concat() < *"140000"
        {
            continue;
        }
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
        let Record { ticket, incarnation, .. } = read(&state).await.unwrap().record;
        assert_eq!(ticket.get(), 60, "{setting}");
        assert!(incarnation.len() > 15, "{setting}: {incarnation}");
        // Longer than an idle session may last.
        tokio::time::sleep(Duration::from_millis(150)).await;
        open(&state).await.unwrap_or_else(|error| panic!("{setting}: {error:?}"));
    }
    server.psql("ALTER ROLE postgres RESET ALL");
    // Shorter than anything takes.
    server.psql("ALTER ROLE postgres SET statement_timeout = 100");
    let state = connect_patiently(server.url()).await;
    open(&state).await.unwrap();
    hook(&server, BEFORE, "PERFORM pg_sleep(60)");
    let error = open(&state).await.unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
}

/// The process slept longer than the server keeps an idle session, and sees so with its next command alone.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_command_after_the_server_ended_idle_sessions_is_retried() {
    let server = PostgresServer::start();
    if *server.psql("SHOW server_version_num").concat() < *"140000" {
        return;
    }
    server.psql("ALTER ROLE postgres SET idle_session_timeout = 100");
    let state = connect_patiently(server.url()).await;
    for _ in 0..3 {
        open(&state).await.unwrap();
        // Nothing of this runtime goes on meanwhile.
        std::thread::sleep(Duration::from_millis(300));
        assert!(read(&state).await.is_some());
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// Something that takes away each row as it comes, which nobody should do.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_row_that_cannot_be_stored_is_an_error_and_not_a_hang() {
    let (server, state) = opened().await;
    hook(&server, BEFORE, "NULL");
    let outcome = tokio::time::timeout(LONG / 4, open(&state)).await;
    assert_eq!(kind(outcome.unwrap()), Denied);
}
