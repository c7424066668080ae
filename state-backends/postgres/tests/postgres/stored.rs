//! What is in the database: rows that others spoilt, edited or took away, and what is left untouched.

use interval_queue_contract::{Micros, Record};

use crate::{addresses::refused, common::*};

fn rows(server: &PostgresServer) -> Vec<String> {
    server.psql(&format!("SELECT * FROM {TABLE} ORDER BY name"))
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn what_is_not_such_a_record_is_left_alone() {
    let (server, state) = opened().await;
    let good = server.psql(&format!("SELECT record::jsonb FROM {TABLE}")).concat();
    let edited = |from: &str, to: &str| {
        assert!(good.contains(from), "{good}");
        good.replace(from, to)
    };
    let newer = edited("\"version\": 2", &format!("\"version\":{}", Record::VERSION + 1));
    let interval = |is: &str| edited("\"interval\": 1000000", &format!("\"interval\":{is}"));
    for (record, kinds, words) in [
        ("{}".to_owned(), &[Foreign, Damaged][..], "cannot be used"),
        ("{\"colour\": \"red\"}".to_owned(), &[Foreign, Damaged], "cannot be used"),
        ("[]".to_owned(), &[Foreign, Damaged], "cannot be used"),
        ("null".to_owned(), &[Foreign, Damaged], "cannot be used"),
        ("17".to_owned(), &[Foreign, Damaged], "cannot be used"),
        (interval("0"), &[Foreign, Damaged], "cannot be used"),
        (interval("-5"), &[Foreign, Damaged], "cannot be used"),
        (interval("\"\\u0000\""), &[Foreign, Damaged], "cannot be used"),
        (newer, &[NewerVersion], "upgrade"),
    ] {
        server.psql(&format!("UPDATE {TABLE} SET record = '{record}'"));
        let before = rows(&server);
        let outcomes = [
            open(&state).await.map(drop),
            change(&state, Change::Reset, Memory::default()).await.map(drop),
            Shard::new("a").step(&state, 1).await.map(drop),
            state.apply(&mail(), Command::Read).await.map(drop),
        ];
        let expected = outcomes[0].as_ref().unwrap_err().kind();
        assert!(kinds.contains(&expected), "{record}: {expected:?}");
        for outcome in outcomes {
            assert!(!outcome.as_ref().unwrap_err().is_retryable(), "{outcome:?}");
            refused(outcome, expected, &["\"mail\"", words]);
        }
        assert_eq!(rows(&server), before, "{record}");
        // Other queues are none the worse for it.
        let other = QueueName::new("other").unwrap();
        state.apply(&other, opening(5)).await.unwrap();
        server.psql(&format!("DELETE FROM {TABLE} WHERE name = 'other'"));
    }
    server.psql(&format!("UPDATE {TABLE} SET record = '{good}'"));
    open(&state).await.unwrap();
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_record_that_a_person_edits_is_what_holds() {
    let (server, state) = opened().await;
    Shard::new("a").step(&state, 3).await.unwrap();
    server.psql(&format!(
        "UPDATE {TABLE} SET record = jsonb_set(record::jsonb, '{{meters,0,interval}}', '500000')::json WHERE name = 'mail'"
    ));
    let record = read(&state).await.unwrap().record;
    assert_eq!(record.interval(), Micros::from_millis(500));
    assert_eq!(record.ticket.get(), 3);
    assert_eq!(takes(&mut Shard::new("b"), &state, 1).await, 4);
    assert_eq!(read(&state).await.unwrap().record.interval(), Micros::from_millis(500));
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_queue_that_is_taken_away_is_lifted_by_what_shards_remember() {
    let (server, state) = opened().await;
    let harms = [
        format!("DELETE FROM {TABLE}"),
        "DROP TABLE interval_queue.interval_queue, interval_queue.interval_queue_schema".to_owned(),
        "DROP SCHEMA interval_queue CASCADE".to_owned(),
    ];
    for (n, harm) in harms.iter().enumerate() {
        open(&state).await.unwrap();
        let mut shard = Shard::new("a");
        let first = takes(&mut shard, &state, 5).await;
        server.psql(harm);
        if n == 0 {
            assert_eq!(read(&state).await, None, "{harm}");
        }
        assert_eq!(takes(&mut shard, &state, 1).await, first + 5, "{harm}");
        server.psql(harm);
        assert_eq!(state.queues().await.unwrap(), [], "{harm}");
        assert_eq!(read(&state).await, None, "{harm}");
    }
    open(&state).await.unwrap();
    // Of two tables that belong together only one: nobody knows what that is.
    server.psql("DROP TABLE interval_queue.interval_queue");
    assert_eq!(kind(open(&state).await), Damaged);
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn schemas_are_separate() {
    let server = server();
    let at = |schema: String| on(PostgresStore::builder(server.url()).schema(schema));
    let (one, other) = (at(someplace()).await.unwrap(), at(someplace()).await.unwrap());
    open(&one).await.unwrap();
    assert_eq!(read(&other).await, None);
    let mut names = ["c", "{x}", "日本", "Z", "a b", "%"].map(|name| QueueName::new(name).unwrap());
    for name in &names {
        other.apply(name, opening(5)).await.unwrap();
    }
    names.sort();
    assert_eq!(other.queues().await.unwrap(), names);
    assert_eq!(one.queues().await.unwrap(), [mail()]);
}
