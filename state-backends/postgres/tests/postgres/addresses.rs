//! What is refused before anything is stored: addresses, settings, servers, databases. No error has a password
//! in it.

use interval_queue_store::Url;

use crate::common::*;

/// Checks the kind, and that all these words are said and none of a password.
pub(crate) fn refused<T: std::fmt::Debug>(
    outcome: Result<T, StateError>,
    kind: StateErrorKind,
    words: &[&str],
) {
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
    let begins_well = text.chars().next().is_some_and(|c| !c.is_uppercase() || c == 'P');
    assert!(!text.contains('\n') && begins_well, "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

#[tokio::test]
async fn an_invalid_address_or_setting_gets_an_error_with_a_remedy() {
    for (url, words) in [
        ("mysql://root:hunter2@localhost/x", &["postgres://"][..]),
        ("host=localhost password=hunter2", &["postgres://"]),
        ("host=localhost password=hunter2 options=a:b", &["postgres://"]),
        ("hunter2@localhost:5432", &["postgres://"]),
        ("", &["postgres://"]),
        ("postgres:ann:hunter2@localhost", &["use postgres://HOST/DATABASE"]),
        ("postgresql:jobs", &["use postgresql://HOST/DATABASE"]),
        ("postgres://", &["no host", "?host="]),
        ("postgres:///app", &["no host", "?host="]),
        ("postgres://ann:hunter2@/app", &["no host"]),
        ("postgres://ann:hunter2@localhost:port/app", &["port", "%-encoding"]),
        ("postgres://ann:s3@hunter2@localhost/app", &["%40"]),
        ("postgres://ann:s3?hunter2@localhost/app", &["%3F"]),
        ("postgres://ann:12/hunter2@localhost/app", &["%2F"]),
        ("postgres://ann:s3?hunter2=x&sslmode=disable@localhost/app", &["%3F"]),
        ("postgres://localhost/app?password=hunter2@x", &["%40"]),
        ("postgres://ann:hunter2@localhost/%FF", &["UTF-8"]),
        ("postgres://ann:%hunter2@localhost/app", &["a % without two hexadecimal digits", "write %25"]),
        ("postgres://localhost/app?password=100%&user=hunter2", &["\"password\"", "write %25"]),
    ] {
        refused(PostgresState::connect(url).await, Invalid, words);
    }
    let known = "known are schema, connections, timeout, durability, sslrootcert, sslmode, application_name,";
    for (parameters, words) in [
        ("colour=s3cret", &["unknown parameter \"colour\" of \"postgres:\"", known][..]),
        ("connect_timeout=s3cret", &["connect_timeout"]),
        ("target_session_attrs=s3cret", &["target_session_attrs"]),
        ("colour", &["\"colour\" has no value"]),
        ("user=ann&user=bob", &["\"user\" is given twice"]),
        ("password=hunter2&password=s3cret", &["\"password\" is given twice"]),
        ("password=hunter2&s3cret", &["%26 for an & in a password"]),
        ("sslmode=whatever", &["sslmode=whatever", "verify-full"]),
        ("sslrootcert=%FF", &["UTF-8"]),
        ("durability=some", &["durability=some: give full or relaxed"]),
        ("connections=many", &["connections=many: give a whole number"]),
        ("connections=-1", &["connections=-1"]),
        ("connections=0", &["connections 0", "1 to 1000"]),
        ("connections=1001", &["connections 1001"]),
        ("timeout=2", &["timeout=2"]),
        ("timeout=0s", &["timeout 0ns", "100ms"]),
        ("schema=", &["63 bytes"]),
        (&format!("schema={}", "x".repeat(64)), &["\"xxx", "63 bytes"]),
        (&format!("schema={}", "%C3%A4".repeat(32)), &["63 bytes"]),
        ("schema=a%0Ab", &["printable"]),
        ("schema=a%00b", &["printable"]),
        ("schema=pg_x", &["pg_x"]),
        #[cfg(not(feature = "tls"))]
        ("sslmode=require", &["require", "postgres-tls"]),
        #[cfg(not(feature = "tls"))]
        ("sslmode=verify-ca", &["verify-ca", "postgres-tls"]),
        #[cfg(not(feature = "tls"))]
        ("sslmode=verify-full", &["verify-full", "postgres-tls"]),
    ] {
        let url = format!("postgres://ann:hunter2@localhost/app?{parameters}");
        refused(PostgresState::connect(&url).await, Invalid, words);
    }
}

#[test]
fn our_url_parameters_are_taken_and_the_rest_goes_to_libpq() {
    let taken = |url: &str| Builder::from_url(Url::parse(url, "").unwrap()).unwrap();
    let default = PostgresStore::builder("postgres://ann:hunter2@localhost/app");
    let text = format!("{default:?}");
    let shown = "schema: \"interval_queue\", connections: 4, timeout: 2s, durability: Full }";
    assert!(text.ends_with(shown) && !text.contains("ann"), "{text}");
    let url = "postgresql://h?schema=a%20b&connections=2&timeout=250ms&durability=relaxed&connect_timeout=7";
    let set = PostgresStore::builder("postgres://h").schema("a b").connections(2);
    let set =
        set.timeout(Duration::from_millis(250)).durability(interval_queue_postgres::Durability::Relaxed);
    assert_eq!(format!("{:?}", taken(url)), format!("{set:?}"));
    for url in [
        "postgres://a:5432,b:5433?application_name=n&channel_binding=disable&connect_timeout=3&dbname=d&\
         hostaddr=10.0.0.1,10.0.0.2&keepalives=0&keepalives_idle=5&keepalives_interval=6&keepalives_retries=7&\
         load_balance_hosts=random&options=-c%20a=b&password=p%26q&sslmode=disable&sslnegotiation=postgres&\
         sslrootcert=none&target_session_attrs=read-write&tcp_user_timeout=4&user=u",
        "postgres:///jobs?host=%2Frun&port=5433",
    ] {
        assert_eq!(format!("{:?}", taken(url)), text);
    }
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_server_that_refuses_is_named_by_what_would_help() {
    let server = PostgresServer::with_password("s3cret");
    let before = everything(&server);
    let at = |user: &str, database: &str| format!("postgres://{user}@127.0.0.1:{}/{database}", server.port());
    for (user, database, kind, words) in [
        ("tester:hunter2", "postgres", Denied, &["password"][..]),
        ("tester", "postgres", Invalid, &["password missing"]),
        ("nobody:hunter2", "postgres", Denied, &["user"]),
        ("tester:s3cret", "nowhere", NotFound, &["database", "create it"]),
    ] {
        refused(PostgresState::connect(&at(user, database)).await, kind, words);
    }
    assert_eq!(everything(&server), before);
    let state = PostgresState::connect(&at("tester:s3cret", "postgres")).await.unwrap();
    assert!(!format!("{state:?}").contains("s3cret"), "{state:?}");
    open(&state).await.unwrap();
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_server_that_is_only_read_names_the_way_out() {
    let primary = PostgresServer::start();
    let standby = PostgresServer::standby_of(&primary);
    let way_out = &["target_session_attrs=read-write", "\"postgres\""];
    refused(PostgresState::connect(standby.url()).await, Denied, way_out);
    open(&connect(primary.url()).await).await.unwrap();
    let table = "interval_queue.interval_queue_schema";
    standby.wait_until("it has the tables", |standby| {
        standby.psql(&format!("SELECT to_regclass('{table}')")) == [table]
    });
    refused(PostgresState::connect(standby.url()).await, Denied, way_out);

    primary.psql("DROP SCHEMA interval_queue CASCADE");
    primary.psql("CREATE DATABASE quiet");
    let set = |how: &str| drop(primary.psql(&format!("ALTER DATABASE quiet {how}")));
    let (on, off) = ("SET default_transaction_read_only = on", "RESET default_transaction_read_only");
    set(on);
    let quiet = database(&primary, "quiet");
    let way_out = &["\"quiet\"", "default_transaction_read_only"];
    refused(PostgresState::connect(&quiet).await, Denied, way_out);
    set(off);
    let state = connect(&quiet).await;
    set(on);
    primary.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'quiet'");
    assert_eq!(kind(open(&state).await), Unreachable);
    refused(PostgresState::connect(&quiet).await, Denied, way_out);
    set(off);
    until_it_works(&state).await;
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_database_that_cannot_hold_every_name_is_refused() {
    let server = server();
    server.psql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    let url = database(&server, "latin");
    refused(PostgresState::connect(&url).await, Unsupported, &["\"latin\"", "LATIN1", "UTF8"]);
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
    let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let at = |user: &str, name: &str| {
        let address = format!("postgres://{}@127.0.0.1:{}", encoded(user), server.port());
        PostgresStore::builder(&format!("{address}/{0}?schema={0}", encoded(name)))
    };
    for name in names {
        let quoted = name.replace('"', "\"\"");
        server.psql(&format!("CREATE ROLE \"{quoted}\" LOGIN"));
        server.psql(&format!("CREATE DATABASE \"{quoted}\" OWNER \"{quoted}\""));
        let (state, other) =
            (on(at(name, name)).await.unwrap(), on(at(name, name).connections(1)).await.unwrap());
        let queue = QueueName::new(name.trim().to_owned() + "q").unwrap();
        let mut changes = state.changes(&queue).await.unwrap();
        other.apply(&queue, opening(5)).await.unwrap();
        notified(&mut changes).await;
        assert!(state.apply(&queue, Command::Read).await.unwrap().read().unwrap().is_some());
        assert_eq!(state.queues().await.unwrap(), [queue]);
    }
    server.psql("CREATE ROLE \"no one's\" LOGIN");
    let denied = on(at("no one's", names[0])).await;
    refused(denied, Denied, &["\"no one's\"", "\"we\"\"ird Schéma\""]);
}
