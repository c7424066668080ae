//! Each kind of place: a socket, several hosts, TLS.

use std::path::Path;

use crate::common::*;

/// A few commands and a nudge.
async fn works(state: &PostgresState) {
    open(state).await.unwrap();
    // What others said before.
    change(state, Change::Reset, Memory::default()).await.unwrap();
    let (mut a, mut b) = (Shard::new("a"), Shard::new("b"));
    a.step(state, 2).await.unwrap();
    b.step(state, 1).await.unwrap();
    assert!(read(state).await.unwrap().record.shards.len() >= 2);
    let mut changes = state.changes(&mail()).await.unwrap();
    change(state, Change::Resume, Memory::default()).await.unwrap();
    notified(&mut changes).await;
}

fn encoded(path: &Path) -> String {
    path.to_str().unwrap().replace('/', "%2F")
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_socket() {
    let server = PostgresServer::start();
    let (directory, port) = (encoded(server.dir()), server.port());
    for url in [
        format!("postgres://postgres@{directory}:{port}/postgres"),
        format!("postgresql://postgres@/postgres?host={}&port={port}", server.dir().display()),
        #[cfg(feature = "tls")]
        format!("postgres://postgres@{directory}:{port}/postgres?sslmode=require"),
    ] {
        works(&PostgresState::connect(&url).await.unwrap()).await;
    }
    assert_eq!(count(&server, "client_addr IS NOT NULL"), 0);
}

/// The address of the one of two that can be written to.
pub(crate) fn either(first: &PostgresServer, second: &PostgresServer) -> String {
    let ports = (first.port(), second.port());
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", ports.0, ports.1);
    format!("postgres://postgres@{hosts}/postgres?target_session_attrs=read-write")
}

/// Waits until the standby has all that the primary has.
pub(crate) fn wait_until_in_step(primary: &PostgresServer, standby: &PostgresServer) {
    let written = primary.psql("SELECT pg_current_wal_lsn()").concat();
    standby.wait_until("it is in step", |standby| {
        standby.psql(&format!("SELECT pg_last_wal_replay_lsn() >= '{written}'")) == ["t"]
    });
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn several_hosts_are_searched_for_the_one_that_can_be_written() {
    let mut primary = PostgresServer::start();
    let standby = PostgresServer::standby_of(&primary);
    let state = connect(&either(&standby, &primary)).await;
    works(&state).await;
    let before = read(&state).await.unwrap().record;
    wait_until_in_step(&primary, &standby);
    primary.kill();
    assert_eq!(kind(open(&state).await), Unreachable, "none can be written to");
    standby.promote();
    until_it_works(&state).await;
    let after = read(&state).await.unwrap().record;
    assert_ne!(after.incarnation, before.incarnation);
    assert_eq!(after.ticket, before.ticket);
    assert!(after.next_slot(1) > before.next_slot(1));
    works(&state).await;
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_silent_host_does_not_hide_the_others() {
    let (old, new) = (PostgresServer::start(), PostgresServer::start());
    let url = either(&old, &new);
    let before = connect_impatiently(&url).await;
    until_it_works(&before).await;
    assert_eq!(count(&new, "true"), 0, "the first one will do");
    old.freeze();
    until_it_works(&before).await;
    // The address may give one host more time than all of them have. Half of the time-out is for the silent one.
    let store = PostgresStore::builder(&format!("{url}&connect_timeout=100")).timeout(STALL_TIMEOUT / 2);
    let state = on(store).await.unwrap();
    works(&state).await;
    drop(state.changes(&mail()).await.unwrap());
    old.thaw();
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn names_of_the_application_do_not_shadow_the_servers() {
    let server = PostgresServer::start();
    server.psql("CREATE SCHEMA app; CREATE TABLE app.json (x int)");
    for function in [
        "clock_timestamp() RETURNS timestamptz AS $$ SELECT timestamptz '2001-01-01' $$",
        "pg_postmaster_start_time() RETURNS timestamptz AS $$ SELECT timestamptz '2001-01-01' $$",
        "current_setting(text) RETURNS text AS $$ SELECT 'nothing' $$",
        "pg_notify(text, text) RETURNS void AS $$ SELECT $$",
    ] {
        server.psql(&format!("CREATE FUNCTION app.{function} LANGUAGE sql"));
    }
    server.psql("ALTER ROLE postgres SET search_path = app, pg_catalog");
    let state = connect(server.url()).await;
    open(&state).await.unwrap();
    let record = read(&state).await.unwrap().record;
    let in_2001 = 1_000_000_000_000_000;
    assert!(record.seen_at.get() > in_2001 && record.incarnation.parse::<u64>().unwrap() > in_2001);
}

#[cfg(feature = "tls")]
mod tls {
    use std::fs;

    use super::*;
    use crate::addresses::refused;

    #[tokio::test]
    #[ignore = "needs postgresql: scripts/test runs it"]
    async fn each_mode_checks_what_it_says() {
        let (server, stranger) = (PostgresServer::with_tls(), PostgresServer::with_tls());
        let (ours, theirs) = (encoded(&server.ca()), encoded(&stranger.ca()));
        let port = server.port();
        let right = format!("postgres://postgres@localhost:{port}/postgres?hostaddr=127.0.0.1");
        let by_number = format!("postgres://postgres@127.0.0.1:{port}/postgres?");
        let other = format!("postgres://postgres@another.example:{port}/postgres?hostaddr=127.0.0.1");
        for url in [
            right.clone(),
            format!("{right}&sslmode=prefer"),
            format!("{right}&sslmode=require"),
            format!("{right}&sslmode=require&sslrootcert={ours}"),
            format!("{right}&sslrootcert={ours}&sslmode=verify-ca"),
            format!("{right}&sslmode=verify-full&sslrootcert={ours}"),
            format!("{by_number}sslmode=verify-full&sslrootcert={ours}"),
            format!("{other}&sslmode=require"),
            format!("{other}&sslmode=verify-ca&sslrootcert={ours}"),
        ] {
            let state = PostgresState::connect(&url).await.unwrap_or_else(|error| panic!("{url}: {error:?}"));
            works(&state).await;
            let plain = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                         WHERE application_name = 'interval-queue' AND NOT ssl";
            assert_eq!(server.psql(plain), ["0"], "{url}");
        }
        for url in [
            format!("{right}&sslmode=verify-ca"),
            format!("{right}&sslmode=verify-full"),
            format!("{right}&sslmode=verify-full&sslrootcert=system"),
            format!("{right}&sslmode=require&sslrootcert={theirs}"),
            format!("{right}&sslmode=verify-ca&sslrootcert={theirs}"),
            format!("{right}&sslmode=verify-full&sslrootcert={theirs}"),
            format!("{other}&sslmode=verify-full&sslrootcert={ours}"),
        ] {
            refused(PostgresState::connect(&url).await, Unreachable, &[]);
        }
        let no_certificate = encoded(&server.dir().join("server.ext"));
        for (parameters, kind, words) in [
            ("sslmode=disable", Denied, &[][..]),
            ("sslmode=verify-ca&sslrootcert=/nowhere/ca.pem", Invalid, &["/nowhere/ca.pem"]),
            (&format!("sslmode=verify-ca&sslrootcert={no_certificate}"), Invalid, &["server.ext", "PEM"]),
        ] {
            refused(PostgresState::connect(&format!("{right}&{parameters}")).await, kind, words);
        }
    }

    #[tokio::test]
    #[ignore = "needs postgresql: scripts/test runs it"]
    async fn a_server_without_it_is_used_unless_that_is_forbidden() {
        let server = PostgresServer::start();
        for mode in ["disable", "prefer"] {
            works(&connect(&format!("{}?sslmode={mode}", server.url())).await).await;
        }
        for mode in ["require", "verify-ca", "verify-full"] {
            let url = format!("{}?sslmode={mode}", server.url());
            refused(PostgresState::connect(&url).await, Invalid, &["does not support TLS"]);
        }
    }

    #[tokio::test]
    #[ignore = "needs postgresql: scripts/test runs it"]
    async fn a_password_is_bound_to_the_channel() {
        let server = PostgresServer::with_tls();
        let rules = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
        fs::write(server.data().join("pg_hba.conf"), rules).unwrap();
        server.psql("SET password_encryption = 'scram-sha-256'; CREATE ROLE ann LOGIN PASSWORD 'p@ss?/#%'");
        server.psql("GRANT CREATE ON DATABASE postgres TO ann");
        server.psql("SELECT pg_reload_conf()");
        let address = |password: &str| {
            let (port, ca) = (server.port(), encoded(&server.ca()));
            format!(
                "postgres://ann:{password}@localhost:{port}/postgres?sslmode=verify-full&sslrootcert={ca}&channel_binding=require"
            )
        };
        works(&PostgresState::connect(&address("p%40ss%3F%2F%23%25")).await.unwrap()).await;
        refused(PostgresState::connect(&address("hunter2")).await, Denied, &[]);
    }
}
