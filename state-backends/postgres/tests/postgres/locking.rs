//! The row of a queue: for how long it is held, and what others notice of it.

use std::{
    io::{self, BufRead, Write},
    sync::mpsc,
};

use interval_queue_test_support::Process;

use crate::{addresses::refused, common::*};

const WAITS: &str = "wait_event_type = 'Lock'";
const HOLDS: &str = "state = 'idle in transaction'";

/// The server's clock, or what a record says instead.
async fn micros(session: &tokio_postgres::Client, of: &str) -> u64 {
    let micros: i64 = session.query_one(&format!("SELECT {of}"), &[]).await.unwrap().get(0);
    micros.try_into().unwrap()
}

const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
/// When the record was last written; a look would tell the time of the look.
const SEEN_AT: &str = "(record->>'seen_at')::bigint FROM interval_queue.interval_queue";

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn the_clock_is_read_after_the_row_is_locked() {
    let (server, state) = opened().await;
    let other = session(server.url()).await;
    let mut fractions = 0;
    for _ in 0..20 {
        let before = micros(&other, NOW).await;
        open(&state).await.unwrap();
        let seen = micros(&other, SEEN_AT).await;
        assert!((before..=micros(&other, NOW).await).contains(&seen));
        fractions += seen % 1_000;
    }
    assert_ne!(fractions, 0, "they are milliseconds");
    lock_row(&other).await;
    let paused = tokio::spawn(async move { pause(&state).await });
    until_some(&server, WAITS, |count| count > 0).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let released = micros(&other, NOW).await;
    other.batch_execute("ROLLBACK").await.unwrap();
    paused.await.unwrap().unwrap();
    let seen = micros(&other, SEEN_AT).await;
    assert!((released..=micros(&other, NOW).await).contains(&seen), "{seen} is before {released}");
}

/// A table may be locked as a whole, by `VACUUM FULL` for one; commands that wait for it must not pile up in
/// the server.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_row_or_table_locked_too_long_makes_commands_unreachable() {
    let (server, state) = opened_impatiently().await;
    let patient = connect_patiently(server.url()).await;
    let before = server.psql(&format!("SELECT * FROM {TABLE}"));
    let other = session(server.url()).await;
    lock_row(&other).await;
    for _ in 0..6 {
        let begun = Instant::now();
        refused(pause(&state).await, Unreachable, &["row of the queue"]);
        assert!(begun.elapsed() >= TIMEOUT / 2, "{:?}", begun.elapsed());
    }
    assert!(read(&patient).await.is_some(), "a look waits for nobody");
    assert_eq!(server.psql(&format!("SELECT * FROM {TABLE}")), before);
    other.batch_execute("ROLLBACK").await.unwrap();
    until_it_works(&state).await;
    assert!(!read(&patient).await.unwrap().record.paused);
    other.batch_execute(&format!("BEGIN; LOCK TABLE {TABLE} IN ACCESS EXCLUSIVE MODE")).await.unwrap();
    for _ in 0..3 {
        assert_eq!(kind(state.apply(&mail(), Command::Read).await), Unreachable);
        assert_eq!(kind(state.queues().await), Unreachable);
        assert_eq!(kind(open(&state).await), Unreachable);
    }
    // Connections end by themselves, a little later.
    until_some(&server, WAITS, |count| count == 0).await;
    other.batch_execute("ROLLBACK").await.unwrap();
    until_it_works(&state).await;
    assert_eq!(patient.queues().await.unwrap(), [mail()]);
}

/// Between its two trips the network goes away. The server hears of it, or it does not.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_lost_shard_releases_the_row_within_half_the_time_out() {
    let (server, others) = opened().await;
    for (is_heard, timeout, most) in [(false, Duration::from_secs(2), LONG / 4), (true, LONG, LONG / 8)] {
        let proxy = Proxy::before(server.port());
        let lost = on(PostgresStore::builder(&through(proxy.port())).timeout(timeout)).await.unwrap();
        open(&lost).await.unwrap();
        proxy.delay(Duration::from_millis(300), Duration::from_millis(300));
        let command = tokio::spawn(async move { pause(&lost).await });
        until_some(&server, HOLDS, |count| count > 0).await;
        let begun = Instant::now();
        if is_heard {
            proxy.cut();
            proxy.delay(Duration::ZERO, Duration::ZERO);
        } else {
            proxy.fall_silent();
        }
        open(&others).await.unwrap();
        println!("held up for {:?}", begun.elapsed());
        assert!(begun.elapsed() < most, "{:?}", begun.elapsed());
        let outcome = command.await.unwrap();
        assert!(outcome.as_ref().map_or_else(StateError::is_retryable, |()| is_heard), "{outcome:?}");
        assert!(is_heard || !read(&others).await.unwrap().record.paused);
    }
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_process_that_is_stopped_while_it_holds_the_row_loses_it() {
    if Process::is_copy() {
        return pause_and_resume().await;
    }
    let (server, others) = opened().await;
    let proxy = Proxy::before(server.port());
    let (sender, heard) = mpsc::channel();
    let name = "locking::a_process_that_is_stopped_while_it_holds_the_row_loses_it";
    let mut process =
        Process::start_with(name, [("ADDRESS".to_owned(), through(proxy.port()))], move |line| {
            if let Some(line) = line.strip_prefix("outcome ") {
                sender.send(line.to_owned()).unwrap();
            }
        });
    process.tell("go");
    assert_eq!(heard.recv_timeout(LONG).unwrap(), "ok");
    proxy.delay(Duration::from_millis(200), Duration::from_millis(200));
    // It may go on before it stands still, or before somebody looks.
    loop {
        process.tell("go");
        if !(0..20).any(|_| count(&server, HOLDS) == 1) {
            continue;
        }
        process.freeze();
        tokio::time::sleep(Duration::from_millis(300)).await;
        if count(&server, HOLDS) == 1 {
            break;
        }
        process.thaw();
    }
    while heard.try_recv().is_ok() {}
    let begun = Instant::now();
    open(&others).await.unwrap();
    println!("held up for {:?}", begun.elapsed());
    assert!(server.log().contains("idle-in-transaction timeout"), "{}", server.log());
    process.thaw();
    let outcome = heard.recv_timeout(LONG).unwrap();
    assert!(["ok", "try again"].contains(&&*outcome), "{outcome}");
    process.tell("go");
    assert_eq!(heard.recv_timeout(LONG).unwrap(), "ok");
    process.tell("end");
    process.wait();
}

/// A change for each line, until there is another one.
async fn pause_and_resume() {
    let url = std::env::var("ADDRESS").unwrap();
    let state = on(PostgresStore::builder(&url).timeout(Duration::from_secs(4))).await.unwrap();
    for line in io::stdin().lock().lines().map_while(Result::ok).take_while(|line| line == "go") {
        assert_eq!(line, "go");
        let outcome = match pause(&state).await {
            Ok(_) => "ok".to_owned(),
            Err(error) if error.is_retryable() => "try again".to_owned(),
            Err(error) => format!("{error:?}"),
        };
        io::stdout().write_all(format!("\noutcome {outcome}\n").as_bytes()).unwrap();
    }
}

/// The server must not be left with connections that do work for nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn dropped_commands_leave_no_lock_and_no_connection_behind() {
    let server = PostgresServer::start();
    let state = on(PostgresStore::builder(server.url()).timeout(LONG).connections(3)).await.unwrap();
    open(&state).await.unwrap();
    let tasks = ["a", "b", "c", "d", "e", "f"].map(|id| {
        let state = state.clone();
        tokio::spawn(async move {
            let mut shard = Shard::new(id);
            for n in 0..200_u64 {
                let pause = Duration::from_micros(n * 50);
                tokio::select! {
                    biased;
                    stepped = shard.step(&state, 1) => drop(stepped.unwrap()),
                    () = tokio::time::sleep(pause) => {}
                }
                shard.waiting.clear();
            }
        })
    });
    for task in tasks {
        task.await.unwrap();
    }
    open(&state).await.unwrap();
    until_some(&server, "true", |count| count <= 3).await;
    until_some(&server, HOLDS, |count| count == 0).await;
    // One after the other, so that nobody tidies up after another one.
    for n in 0..80 {
        let _ = tokio::time::timeout(Duration::from_micros(n * 40), pause(&state)).await;
        until_some(&server, HOLDS, |count| count == 0).await;
    }
    // All connections of the pool can be used.
    tasks_take_tickets(&state, 20, async {}).await;
    drop(state);
    // Those that are dropped while somebody else holds the row leave the server waiting for it.
    let store = PostgresStore::builder(server.url()).connections(2).timeout(Duration::from_secs(2));
    let state = on(store).await.unwrap();
    open(&state).await.unwrap();
    until_some(&server, "true", |count| count <= 2).await;
    let other = session(server.url()).await;
    lock_row(&other).await;
    for _ in 0..60 {
        let _ = tokio::time::timeout(Duration::from_millis(20), open(&state)).await;
        assert!(count(&server, "true") <= 2);
    }
    other.batch_execute("ROLLBACK").await.unwrap();
    open(&state).await.unwrap();
}
