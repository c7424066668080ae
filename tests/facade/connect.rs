//! What a state's URL can be, and what is said of one that cannot.

use std::time::Duration;

use interval_queue::{Error, ErrorKind, IntervalQueue, SharedState, StateErrorKind, connect};

async fn refused(url: &str) -> Error {
    match connect(url).await {
        Ok(state) => panic!("{url} gave {state:?}"),
        Err(error) => error,
    }
}

/// The URL is wrong, and the error says so, without the password `secret` or `sec?ret`.
async fn is_invalid(url: &str, says: &str) {
    let error = refused(url).await;
    assert_eq!(error.kind(), ErrorKind::Invalid, "{url}: {error}");
    assert!(error.to_string().contains(says), "{url}: {error}");
    assert!(!url.contains("ret") || !format!("{error} {error:?}").contains("ret"), "{url}: {error:?}");
}

/// The URL is right, and nobody is there.
#[cfg(any(feature = "redis", feature = "postgres"))]
async fn is_unreachable(url: &str) {
    let error = refused(url).await;
    assert_eq!(error.state().unwrap().kind(), StateErrorKind::Unreachable, "{url}: {error}");
    assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
}

/// A queue at the URL takes the ticket of this number.
async fn takes(url: &str, ticket: usize) {
    let queue = IntervalQueue::builder("test").interval(Duration::from_millis(1));
    let queue = queue.connect(url).await.unwrap();
    assert_eq!(queue.add(async {}).await.unwrap().ticket().await.unwrap().get(), ticket as u64, "{url}");
    queue.close().await;
}

#[tokio::test]
async fn unknown_parameters_are_named_with_the_known_ones() {
    let missing = tempfile::tempdir().unwrap();
    let file = format!("file:{}/pace.json", missing.path().display());
    for (url, says) in [
        ("", "has no scheme"),
        ("pace.json", "file:PATH"),
        ("memory:name", "memory:name"),
        ("memory:?size=1", "unknown parameter \"size\" of \"memory:\": none are known"),
        ("sql:pace.db", "unknown scheme \"sql:\""),
        ("sql:pace.db", "redis://HOST"),
        ("sql:pace.db", "sqlite:PATH"),
        ("sql:pace.db", "postgres://HOST/DATABASE"),
        ("redis+postgres://h", "unknown scheme \"redis+postgres:\""),
        ("postgres+unix:///s", "unknown scheme \"postgres+unix:\""),
        ("file:", "file:PATH"),
        (&format!("{file}?sync=always"), "known are fsync, replacement, clock, lock_timeout"),
        (&format!("{file}?replacement=copy"), "replacement=copy: give in-place or rename"),
        (&format!("{file}?fsync=maybe"), "fsync=maybe: give never or always"),
        (&format!("{file}?clock=mine"), "clock=mine: give host or server"),
        (&format!("{file}?lock_timeout=5"), "lock_timeout=5"),
        (&format!("{file}?fsync"), "\"fsync\" has no value"),
        (&format!("{file}?fsync=never&fsync=always"), "given twice"),
        ("file:%ff", "UTF-8"),
        ("memory:a\nb", "memory:a\\nb: memory has no name"),
        ("sq\x1blite:", "unknown scheme \"sq\\u{1b}lite:\""),
        (&format!("{file}?fsync=a%0Ab"), "fsync=a\\nb: give"),
        (&format!("{file}?lock_timeout=5%0Ax"), "lock_timeout=5\\nx"),
    ] {
        is_invalid(url, says).await;
    }
    assert_eq!(std::fs::read_dir(missing.path()).unwrap().count(), 0, "nothing was created");
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn unknown_parameters_of_redis_are_named() {
    for (url, says) in [
        ("redis://127.0.0.1/?prefix=a&colour=red", "\"colour\""),
        ("redis://127.0.0.1?timeout=2", "timeout=2"),
        ("redis://127.0.0.1:port", "port"),
        ("redis://127.0.0.1?prefix=me@home", "%40 for an @ in a parameter"),
        ("redis://user:sec?ret@127.0.0.1", "%3F for a ? in a password"),
        ("redis://user:pass?secret@127.0.0.1:1", "%3F for a ? in a password"),
    ] {
        is_invalid(url, says).await;
    }
    is_unreachable("redis://user:secret@127.0.0.1:1").await;
}

#[cfg(feature = "directory")]
#[tokio::test]
async fn unknown_parameters_of_a_directory_are_named() {
    let missing = tempfile::tempdir().unwrap();
    let jobs = format!("dir:{}/missing/jobs", missing.path().display());
    is_invalid("dir:", "dir:PATH").await;
    is_invalid(&format!("{jobs}?durability=full"), "known are fsync, clock, lock_timeout").await;
    is_invalid(&format!("{jobs}?fsync=often"), "give never or always").await;
    let error = connect(&jobs).await.unwrap_err();
    assert!(error.to_string().contains("does not exist"), "{error}");
    // A directory has the pace, too.
    takes(&format!("dir:{}/jobs", missing.path().display()), 1).await;
    assert!(missing.path().join("jobs/pace.json").exists());
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn unknown_parameters_of_sqlite_are_named() {
    let missing = tempfile::tempdir().unwrap();
    let file = format!("sqlite:{}/pace.db", missing.path().display());
    for (url, says) in [
        ("sqlite:", "sqlite:PATH"),
        ("sqlite:", "memory:"),
        ("sqlite://", "sqlite:PATH"),
        ("sqlite:?durability=full", "sqlite:PATH"),
        ("sqlite::memory:", "use sqlite:PATH, or memory: for one process"),
        ("sqlite://:memory:", "memory: for one process"),
        ("sqlite:%3Amemory%3A", "memory: for one process"),
        ("sqlite::memory:?lock_timeout=1s", "memory: for one process"),
        ("sqlite:%ff", "UTF-8"),
        (
            &format!("{file}?mode=rwc"),
            "unknown parameter \"mode\" of \"sqlite:\": known are durability, lock_timeout",
        ),
        (&format!("{file}?durability=some"), "durability=some: give full or relaxed"),
        (&format!("{file}?durability=a%0Ab"), "durability=a\\nb: give"),
        (&format!("{file}?lock_timeout=5"), "lock_timeout=5"),
        (&format!("{file}?durability"), "\"durability\" has no value"),
        (&format!("{file}?durability=full&durability=full"), "given twice"),
    ] {
        is_invalid(url, says).await;
    }
    assert_eq!(std::fs::read_dir(missing.path()).unwrap().count(), 0, "nothing was created");
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn unknown_parameters_of_postgres_are_named_without_a_password() {
    for (url, says) in [
        ("postgres:jobs", "use postgres://HOST/DATABASE"),
        ("postgresql:jobs", "use postgresql://HOST/DATABASE"),
        ("postgres://127.0.0.1?connections=many", "connections=many: give a whole number"),
        ("postgres://127.0.0.1?connections=-1", "connections=-1"),
        ("postgres://127.0.0.1?timeout=2", "timeout=2"),
        ("postgres://127.0.0.1?durability=some", "durability=some: give full or relaxed"),
        ("postgres://127.0.0.1?schema=%ff", "UTF-8"),
        (
            "postgres://127.0.0.1?colour=red",
            "unknown parameter \"colour\" of \"postgres:\": known are schema, connections,",
        ),
        ("postgres://127.0.0.1?shema=a", "sslmode"),
        ("postgres://127.0.0.1?schema", "\"schema\" has no value"),
        ("postgres://127.0.0.1?schema=a&schema=b", "\"schema\" is given twice"),
        ("postgres://127.0.0.1?sslmode=disable&sslmode=disable", "\"sslmode\" is given twice"),
        ("postgres://127.0.0.1?application_name=me@home", "%40 for an @ in a parameter"),
        ("postgres://user:sec?ret@127.0.0.1", "%3F for a ? in a password"),
        ("postgres://user:p@secret@127.0.0.1", "%40 for an @"),
        ("postgres://127.0.0.1?user=u&password=p&secret", "%26 for an & in a password"),
        ("postgres://127.0.0.1?password=secret&password=secret", "given twice"),
        ("postgres://user:secret@127.0.0.1?timeout=2", "timeout=2"),
        ("postgres://user:secret@127.0.0.1?schema", "\"schema\" has no value"),
        ("postgres:user:secret@127.0.0.1", "postgres://HOST"),
        ("host=127.0.0.1 password=secret", "postgres://HOST"),
        ("host=127.0.0.1 password=secret options=a:b", "postgres://HOST"),
        ("secret@127.0.0.1:5432", "postgres://HOST"),
    ] {
        is_invalid(url, says).await;
    }
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn parameters_named_as_known_are_accepted() {
    let ours = "schema=pace&connections=2&timeout=500ms&durability=relaxed";
    let theirs = "application_name=a&channel_binding=disable&connect_timeout=1&keepalives=1&keepalives_idle=1&\
                  keepalives_interval=1&keepalives_retries=1&load_balance_hosts=disable&options=-c%20x=y&sslmode=disable&\
                  sslnegotiation=postgres&sslrootcert=%2Fa.pem&target_session_attrs=any&tcp_user_timeout=1000";
    for url in [
        format!("postgres://user:secret@127.0.0.1:1/jobs?{ours}&{theirs}"),
        "postgresql:///?host=127.0.0.1&hostaddr=127.0.0.1&port=1&dbname=j&user=u&password=secret".to_owned(),
        "postgres://u:secret@127.0.0.1:1,127.0.0.1:2/jobs?target_session_attrs=read-write".to_owned(),
    ] {
        is_unreachable(&url).await;
    }
}

#[cfg(all(feature = "postgres", not(feature = "postgres-tls")))]
#[tokio::test]
async fn tls_needs_its_feature() {
    let error = refused("postgres://127.0.0.1?sslmode=require").await;
    assert!(error.to_string().contains("feature \"postgres-tls\""), "{error}");
}

#[cfg(feature = "postgres")]
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_server_is_used_as_its_url_says() {
    let server = interval_queue_test_support::PostgresServer::start();
    let url = server.url();
    for (n, parameters) in
        ["", "?schema=interval_queue", "?durability=relaxed&connections=1&timeout=1s"].iter().enumerate()
    {
        takes(&format!("{url}{parameters}"), n + 1).await;
    }
    let queue = IntervalQueue::builder("test").interval(Duration::from_millis(1));
    let queue = queue.connect(&format!("{url}?application_name=the%20application")).await.unwrap();
    let names = server.psql("SELECT DISTINCT application_name FROM pg_stat_activity");
    assert!(names.contains(&"the application".to_owned()), "{names:?}");
    queue.close().await;
    // Another schema has other queues.
    takes(&format!("{url}?schema=A%20%22b%22"), 1).await;
    is_invalid(&format!("{url}?connections=0"), "give 1 to 1000").await;
}

#[tokio::test]
async fn a_feature_that_is_off_is_named() {
    for (url, feature, on) in [
        ("file:pace.json", "json-file", cfg!(feature = "json-file")),
        ("dir:jobs", "directory", cfg!(feature = "directory")),
        ("sqlite:pace.db", "sqlite", cfg!(feature = "sqlite")),
        ("redis://127.0.0.1", "redis", cfg!(feature = "redis")),
        ("rediss+sentinel://127.0.0.1/m", "redis", cfg!(feature = "redis")),
        ("postgres://user:secret@127.0.0.1", "postgres", cfg!(feature = "postgres")),
        ("postgresql://127.0.0.1", "postgres", cfg!(feature = "postgres")),
    ] {
        if !on {
            is_invalid(url, &format!("needs the feature \"{feature}\" of the crate interval-queue")).await;
        }
    }
}

#[tokio::test]
async fn a_file_may_be_named_in_several_ways() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a b?.json");
    let plain = path.display().to_string().replace('?', "%3F");
    for (n, url) in
        [format!("file:{plain}"), format!("file://{}", plain.replace(' ', "%20"))].iter().enumerate()
    {
        takes(url, n + 1).await;
    }
    assert!(path.exists());
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn a_database_may_be_named_in_several_ways() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a b?.db");
    let plain = path.display().to_string().replace('?', "%3F");
    for (n, url) in [
        format!("sqlite:{plain}"),
        format!("sqlite://{}", plain.replace(' ', "%20")),
        format!("sqlite:{plain}?durability=full&lock_timeout=250ms"),
        format!("sqlite:{plain}?durability=relaxed"),
    ]
    .iter()
    .enumerate()
    {
        takes(url, n + 1).await;
    }
    assert!(path.exists());
}

#[tokio::test]
async fn a_place_that_cannot_hold_a_file_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().display();
    let error = refused(&format!("file:{at}")).await;
    assert!(
        error.to_string().contains(&at.to_string()) && error.to_string().contains("directory"),
        "{error}"
    );
    let error = refused(&format!("file:{at}/missing/pace.json")).await;
    assert_eq!(error.state().unwrap().kind(), StateErrorKind::NotFound, "{error}");
}

#[tokio::test]
async fn an_error_that_main_returns_is_read_by_people() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pace.json");
    std::fs::write(&path, "{\"queues\"").unwrap();
    let error = IntervalQueue::builder("q").connect(&format!("file:{}", path.display())).await.unwrap_err();
    let text = format!("{error:?}");
    assert!(text.starts_with(&format!("{error}\n\nCaused by:\n    EOF while parsing")), "{text}");
    assert_eq!(format!("{:?}", refused("memory:a").await), refused("memory:a").await.to_string());
    assert!(format!("{error:#?}").contains("kind: State"), "{error:#?}");
}

#[tokio::test(start_paused = true)]
async fn names_and_settings_out_of_range_store_nothing() {
    let state = interval_queue::MemoryState::new();
    let second = Duration::from_secs(1);
    let queue = || IntervalQueue::builder("q").interval(second);
    let named = |name: &str| IntervalQueue::builder(name).interval(second);
    for (builder, says) in [
        (named(""), "queue name \"\" is empty"),
        (named(&"x".repeat(201)), "201 bytes"),
        (named("a\tb"), "\"a\\tb\""),
        (queue().interval(Duration::ZERO), "interval 0 is out of range: give 1µs to 366 days"),
        (queue().interval(second * 86_400 * 367), "interval 367 days is out of range"),
        (queue().max_running(0), "max_running 0"),
        (queue().lease(Duration::from_millis(1)), "lease 1ms is out of range: give 100ms to"),
        (queue().linger(Duration::MAX), "give 0 to 3600s"),
        (queue().label("a\nb"), "label \"a\\nb\""),
        (IntervalQueue::builder("q"), "no such queue yet"),
    ] {
        let error = builder.open(state.clone()).await.map(|queue| panic!("{queue:?}: {says}")).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
    assert!(state.queues().await.unwrap().is_empty());
}
