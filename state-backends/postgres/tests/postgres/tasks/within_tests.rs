//! Applications' transactions that stay open with tasks in them: no step waits for them.

use interval_queue_contract::Micros;
use interval_queue_postgres::PostgresTasks;
use interval_queue_task_contract::{
    Add, Added, Change, ChangeTasks, Command, Key, NewEdge, NewTask, OnConflict, OnFailure, PolicyOverride,
    Read, Reply, Selector, State, Stored, Tag, Task, TaskStore, Unique, Until, Verb, When,
};

use super::{application::Driver, support::*};
use crate::common::*;

async fn stored(tasks: &PostgresTasks, ids: impl IntoIterator<Item = u64>) -> Vec<Option<Stored>> {
    let read = Read::Tasks(ids.into_iter().map(id).collect());
    let Reply::Tasks(stored) = tasks.apply(&mail(), Command::Read(read)).await.unwrap() else {
        panic!("no tasks")
    };
    stored
}

fn of(tasks: impl IntoIterator<Item = NewTask>) -> Add {
    Add { tasks: tasks.into_iter().collect(), sequence: 0, age: Micros::ZERO }
}

/// The transaction is open for longer than anybody would wait.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn steps_go_on_while_an_application_holds_its_tasks_back() {
    let server = server();
    for commits in [false, true] {
        let url = fresh_database(&server);
        let store = PostgresStore::builder(&url).timeout(STALL_TIMEOUT).connect().await.unwrap();
        let tasks = PostgresTasks::on(&store).await.unwrap();
        tasks.apply(&mail(), add([task(1), task(2)])).await.unwrap();
        let mut worker = Hand::new(&tasks, 1);
        let leased = worker.step(vec![], 2).await.leased;
        assert_eq!(leased.len(), 2);
        let mut application = session(&url).await;
        let transaction = application.transaction().await.unwrap();
        let unique = |n| NewTask {
            unique: Some(Unique { name: Key::new("only").unwrap(), until: Until::Ended }),
            key: Some(Key::new("k").unwrap()),
            ..task(n)
        };
        let edge = NewEdge { up: id(1), name: None, on_failure: OnFailure::Cancel };
        let new = [unique(3), NewTask { edges: vec![edge], ..task(4) }, task(5)];
        let added = tasks.add_within(&transaction, &mail(), of(new.clone())).await.unwrap();
        assert_eq!(added, [3, 4, 5].map(id).map(Added::New));
        // A second time in the same transaction, and with the name that it has taken.
        let again = tasks.add_within(&transaction, &mail(), of([new[2].clone(), unique(6)])).await.unwrap();
        assert_eq!(again, [Added::Again(id(5)), Added::Kept(id(3))]);
        for n in 0..3 {
            // The upstream ends, sweeps are made, tasks are leased and added.
            let complete = if n == 0 { done(&leased) } else { vec![] };
            let stepped = worker.step(complete, 5).await;
            assert!(stepped.leased.is_empty() && stepped.lost.is_empty(), "{stepped:?}");
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
        assert_eq!(stored(&tasks, [3, 4, 5]).await, [None, None, None]);
        let ran = match commits {
            true => {
                transaction.commit().await.unwrap();
                3
            }
            false => {
                transaction.rollback().await.unwrap();
                0
            }
        };
        let mut leased = Vec::new();
        for _ in 0..4 {
            leased.extend(worker.step(vec![], 5).await.leased);
        }
        assert_eq!(leased.len(), ran, "{leased:?}");
        assert_eq!(stored(&tasks, [3, 4, 5]).await.iter().flatten().count(), ran);
    }
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_failed_add_leaves_the_applications_transaction_as_it_was() {
    let server = server();
    for driver in Driver::ALL {
        let url = fresh_database(&server);
        let tasks = PostgresTasks::connect(&url).await.unwrap();
        tasks.apply(&mail(), add([NewTask { unique: Some(only()), ..task(1) }])).await.unwrap();
        let session = session(&url).await;
        session.batch_execute("CREATE TABLE orders (number integer)").await.unwrap();
        let mut application = driver.connect(&url).await;
        let mut transaction = application.begin().await;
        for (new, kind, word) in [
            (NewTask { priority: 500, ..task(2) }, Invalid, "priority 500"),
            (
                NewTask { unique: Some(only()), on_conflict: OnConflict::Replace, ..task(2) },
                Invalid,
                "replace",
            ),
            (
                NewTask { unique: Some(only()), on_conflict: OnConflict::Refuse, ..task(2) },
                StateErrorKind::Conflict,
                "only",
            ),
            (
                NewTask {
                    edges: vec![NewEdge { up: id(9), name: None, on_failure: OnFailure::Run }],
                    ..task(2)
                },
                NotFound,
                "not stored here",
            ),
        ] {
            // The upstream that is missing is a later task of the batch.
            let error = transaction.add(&tasks, of([task(3), new, task(9)])).await.unwrap_err();
            assert!(error.kind() == kind && error.to_string().contains(word), "{driver:?}: {error:?}");
        }
        transaction.execute("INSERT INTO orders VALUES (1)").await;
        transaction.add(&tasks, of([task(4)])).await.unwrap();
        transaction.execute("INSERT INTO orders VALUES (2)").await;
        transaction.commit().await;
        let there: Vec<bool> = stored(&tasks, 1..5).await.iter().map(Option::is_some).collect();
        assert_eq!(there, [true, false, false, true]);
        assert_eq!(session.query("SELECT FROM orders", &[]).await.unwrap().len(), 2);
    }
}

fn only() -> Unique {
    Unique { name: Key::new("only").unwrap(), until: Until::Ended }
}

/// An edge to an upstream without the id of it.
type Upstream = (Option<Key>, OnFailure, interval_queue_task_contract::EdgeState);

/// A task and its upstreams without what differs between two tasks that were added alike.
fn alike(stored: &Stored) -> (Task, String, Vec<Upstream>) {
    let x = stored.task.clone();
    let since = |at: Micros| {
        if at == Micros::ZERO { at } else { Micros::new(((at - x.added).get() + 5_000_000) / 10_000_000) }
    };
    let due = (x.due - i64::try_from(x.added.get()).unwrap() + 5_000_000).div_euclid(10_000_000);
    let task = Task {
        id: id(0),
        added: Micros::ZERO,
        position: 0,
        due,
        not_before: since(x.not_before),
        deadline: x.deadline.map(since),
        unique: x.unique.clone().map(|unique| Unique { name: Key::new("u").unwrap(), ..unique }),
        ..x
    };
    let edges =
        stored.upstreams.iter().map(|edge| (edge.name.clone(), edge.on_failure, edge.state)).collect();
    (task, stored.payload.as_ref().unwrap().as_str().to_owned(), edges)
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn sql_adds_the_row_that_the_rules_add() {
    let server = server();
    let url = fresh_database(&server);
    let tasks = PostgresTasks::connect(&url).await.unwrap();
    tasks.apply(&mail(), add([task(1)])).await.unwrap();
    let change = interval_queue_task_contract::SettingsChange {
        ageing: Some(Micros::from_millis(3_600_000)),
        ..Default::default()
    };
    tasks.apply(&mail(), Command::Change(Change::Set(change))).await.unwrap();
    let session = session(&url).await;
    let key = |text: &str| Some(Key::new(text).unwrap());
    let hour = Micros::from_millis(3_600_000);
    let edges = vec![NewEdge { up: id(1), name: key("sum"), on_failure: OnFailure::Wait }];
    let policy = PolicyOverride {
        max_attempts: Some(2),
        backoff: Some(Micros::from_millis(1_500)),
        ..PolicyOverride::default()
    };
    let rest = PolicyOverride {
        max_retries: Some(0),
        max_backoff: Some(Micros::ZERO),
        timeout: Some(hour),
        ..PolicyOverride::default()
    };
    let unique = |until| Some(Unique { name: Key::new("u").unwrap(), until });
    let tags = ["red", "gr'een ö"].map(|tag| Tag::new(tag).unwrap()).to_vec();
    let cases = [
        ("", task(2)),
        (r#""priority": -7, "key": null, "tags": null"#, NewTask { priority: -7, ..task(2) }),
        (r#""key": "k", "weight": 12"#, NewTask { key: key("k"), weight: 12, ..task(2) }),
        (
            r#""key": "k", "ordered": true, "delay": "1 h""#,
            NewTask { key: key("k"), ordered: true, not_before: When::After(hour), ..task(2) },
        ),
        (r#""delay": "0", "notify": false"#, task(2)),
        (
            r#""delay": "1h", "priority": 3"#,
            NewTask { not_before: When::After(hour), priority: 3, ..task(2) },
        ),
        (r#""deadline": "1h""#, NewTask { deadline: Some(When::After(hour)), ..task(2) }),
        (
            r#""not_before": "2001-01-01T00:00:00Z""#,
            NewTask { not_before: When::At(Micros::from_millis(978_307_200_000)), ..task(2) },
        ),
        (r#""tags": ["red", "gr'een ö"]"#, NewTask { tags, ..task(2) }),
        (r#""max_attempts": 2, "backoff": "1500 ms""#, NewTask { policy, ..task(2) }),
        (
            r#""after": {"name": "00000000-0000-0007-0000-000000000001", "as": "sum", "on_failure": "wait"}"#,
            NewTask { edges, ..task(2) },
        ),
        (r#""unique": "u1""#, NewTask { unique: unique(Until::Ended), ..task(2) }),
        (r#""unique": "u2", "unique_until": "leased""#, NewTask { unique: unique(Until::Leased), ..task(2) }),
        (r#""max_retries": 0, "max_backoff": "0", "timeout": "1h""#, NewTask { policy: rest, ..task(2) }),
    ];
    for (n, (options, new)) in (10..).step_by(2).zip(cases) {
        let new = NewTask {
            id: id(n),
            kind: interval_queue_task_contract::Kind::new("Straße").unwrap(),
            unique: new
                .unique
                .map(|unique| Unique { name: Key::new(format!("rust {n}")).unwrap(), ..unique }),
            ..new
        };
        tasks.apply(&mail(), add([new])).await.unwrap();
        let comma = if options.is_empty() { "" } else { ", " };
        let id = id(n + 1).uuid();
        let options = format!("{{\"id\": \"{id}\"{comma}{options}}}");
        for (payload, given) in [("'2'", "text"), ("'2'::json", "json"), ("'2'::jsonb", "jsonb")] {
            let sql =
                format!("SELECT interval_queue.add_task('mail', 'Straße', {payload}, $1::text::{given})");
            assert_eq!(session.query_one(&sql, &[&options]).await.unwrap().get::<_, uuid::Uuid>(0), id);
        }
        let both = stored(&tasks, [n, n + 1]).await;
        let [Some(rust), Some(sql)] = &both[..] else { panic!("{options}: {both:?}") };
        assert_eq!(alike(sql), alike(rust), "{options}");
    }
    let Reply::Overview(overview) = tasks.apply(&mail(), Command::Read(Read::Overview)).await.unwrap() else {
        panic!("no overview")
    };
    let ever = overview.counts.iter().filter(|(_, counted, _)| counted.as_str() == "ever_added");
    assert_eq!(ever.map(|&(.., n)| n).sum::<u64>(), 29);
    // A name that is taken, and another way to say that.
    let taken = r#"SELECT interval_queue.add_task('mail', options => '{"unique": "u1"}')"#;
    let first = session.query_one(taken, &[]).await.unwrap().get::<_, uuid::Uuid>(0);
    assert_eq!(first, id(33).uuid());
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_wrong_option_is_named_with_what_would_be_right() {
    let server = server();
    let url = fresh_database(&server);
    let tasks = PostgresTasks::connect(&url).await.unwrap();
    let unique = Some(Unique { name: Key::new("u1").unwrap(), until: Until::Ended });
    tasks.apply(&mail(), add([NewTask { unique, ..task(1) }])).await.unwrap();
    let session = session(&url).await;
    let after = r#""name": "00000000-0000-0007-0000-000000000001""#;
    for (options, words) in [
        (r#""colour": "red""#, r#"unknown option "colour": the options are id, priority, key"#),
        (r#""unique": "u1", "on_conflict": "refuse""#, "has the unique name \"u1\""),
        (r#""unique": "u1", "on_conflict": "replace""#, "take keep or refuse"),
        (r#""unique": "u1", "on_conflict": "drop""#, r#"on_conflict "drop": take keep or refuse"#),
        (r#""unique": "u1", "unique_until": "noon""#, r#"unique_until "noon": take ended or leased"#),
        (r#""key": 7"#, "option key 7: give a text"),
        (r#""ordered": "yes", "key": "k""#, r#"option ordered "yes": give true or false"#),
        (r#""ordered": true"#, "needs a key"),
        (r#""weight": 0"#, "weight 0: give 1 to 1000"),
        (r#""priority": "high""#, r#"option priority "high": give -100 to 100"#),
        (r#""priority": 1.5"#, "option priority 1.5: give -100 to 100"),
        (r#""priority": 12345678901234567890"#, "option priority 12345678901234567890: give -100 to 100"),
        (r#""delay": 5"#, "option delay 5: give a duration, such as \"5 min\""),
        (r#""delay": "5 apples""#, "option delay \"5 apples\": give a duration"),
        (r#""delay": "11 years""#, "at most ten years"),
        (r#""not_before": "soon""#, "option not_before \"soon\": give an instant"),
        (r#""deadline": "2030-13-01""#, "option deadline \"2030-13-01\": give a duration from now"),
        (r#""id": "7""#, "option id \"7\": give a UUID"),
        (r#""tags": "red""#, "option tags \"red\": give a list of texts"),
        (r#""tags": [""]"#, "tag \"\" is empty"),
        (r#""timeout": "0""#, "timeout 0"),
        (r#""max_attempts": 0"#, "max attempts 0"),
        (r#""after": "fetch""#, "option after \"fetch\": give the id of a stored task"),
        (r#""after": [{"id": 7}]"#, "give the id of a stored task"),
        (&format!(r#""after": {{{after}, "on_failure": "explode"}}"#), "on_failure \"explode\": take cancel"),
        (&format!(r#""after": [{{{after}}}, {{{after}}}]"#), "names an upstream twice"),
    ] {
        for given in ["text", "json", "jsonb"] {
            let sql = format!("SELECT interval_queue.add_task('mail', 'default', 'null', $1::text::{given})");
            let error = session.query(&sql, &[&format!("{{{options}}}")]).await.unwrap_err();
            let message = error.as_db_error().unwrap().message().to_owned();
            assert!(message.contains(words), "{options}: {message}");
        }
    }
    for (arguments, words) in [
        ("E'a\\u0085'", "kind"),
        ("'k', to_json(repeat('x', 2000000))", "this queue stores at most 1048576"),
        ("'k', NULL", "payload NULL: give JSON"),
        ("'k', 'text'", "invalid input syntax for type json"),
        ("'k', '1', '[]'", "options []: give an object"),
        ("'k', '1', NULL", "options <NULL>: give an object"),
    ] {
        let error = session.query(&format!("SELECT interval_queue.add_task('mail', {arguments})"), &[]).await;
        let message = error.unwrap_err().as_db_error().unwrap().message().to_owned();
        assert!(message.contains(words), "{arguments}: {message}");
    }
    let Reply::Overview(overview) = tasks.apply(&mail(), Command::Read(Read::Overview)).await.unwrap() else {
        panic!("no overview")
    };
    assert_eq!(overview.counts.iter().find(|(_, counted, _)| counted.as_str() == "ever_added").unwrap().2, 1);
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn json_keeps_its_text_in_sql_and_jsonb_does_not() {
    let server = server();
    let url = fresh_database(&server);
    let tasks = PostgresTasks::connect(&url).await.unwrap();
    let mut worker = Hand::serving(&tasks, 1, "send");
    worker.step(vec![], 0).await;
    let session = session(&url).await;
    let text = "{\"b\": 1.10,\n\"a\":123456789012345678901234567890, \"a\":2}";
    for (given, kept) in [("text", text), ("json", text), ("jsonb", "{\"a\": 2, \"b\": 1.10}")] {
        // A Rust driver has no type for the text of `json`.
        let sql = format!("SELECT interval_queue.add_task('mail', 'send', $1::text::{given})");
        let added: uuid::Uuid = session.query_one(&sql, &[&format!(" {text}\n")]).await.unwrap().get(0);
        let leased = worker.step(vec![], 1).await.leased.remove(0);
        assert_eq!((leased.task.id.uuid(), leased.payload.as_str()), (added, kept), "{given}");
        let token = leased.task.token.to_string();
        let complete = format!("SELECT interval_queue.complete_task('mail', $1, $2, $3::text::{given})");
        let stale = session.query(&complete, &[&added, &"1.1", &text]).await.unwrap_err();
        let stale = stale.as_db_error().unwrap().message().to_owned();
        assert!(stale.contains("is not leased with token 1.1 any more: roll back"), "{stale}");
        session.query(&complete, &[&added, &token, &format!("\t{text} ")]).await.unwrap();
        let read = Command::Read(Read::Tasks(vec![leased.task.id]));
        let Reply::Tasks(found) = tasks.apply(&mail(), read).await.unwrap() else { panic!("no tasks") };
        let ended = found[0].as_ref().unwrap();
        assert_eq!(
            (ended.task.state, ended.result.as_ref().unwrap().as_str()),
            (State::Done, kept),
            "{given}"
        );
    }
    let added: uuid::Uuid =
        session.query_one("SELECT interval_queue.add_task('mail', 'send')", &[]).await.unwrap().get(0);
    let leased = worker.step(vec![], 1).await.leased.remove(0);
    let fail = "SELECT interval_queue.fail_task('mail', $1, $2, 'no paper')";
    let wrong = session.query(fail, &[&added, &"seven"]).await.unwrap_err();
    let wrong = wrong.as_db_error().unwrap().message().to_owned();
    assert!(wrong.contains("token \"seven\": give that of the run, such as 1741684364000000.1"), "{wrong}");
    session.query(fail, &[&added, &leased.task.token.to_string()]).await.unwrap();
    let read = Command::Read(Read::Tasks(vec![leased.task.id]));
    let Reply::Tasks(found) = tasks.apply(&mail(), read).await.unwrap() else { panic!("no tasks") };
    let ended = &found[0].as_ref().unwrap().task;
    assert_eq!((ended.state, ended.error.as_deref()), (State::Failed, Some("no paper")));
}

/// Another step is under way all the time: it holds what steps share, and two tasks that it leases.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn plain_steps_go_beside_one_another_and_skip_what_others_lease() {
    let server = server();
    let url = fresh_database(&server);
    let store = PostgresStore::builder(&url).timeout(STALL_TIMEOUT).connect().await.unwrap();
    // Time stands still, so that nothing is swept.
    let tasks = PostgresTasks::with_clock(&store, || Micros::new(1_700_000_000_000_000)).await.unwrap();
    tasks.apply(&mail(), add((0..8).map(task))).await.unwrap();
    let mut worker = Hand::new(&tasks, 1);
    let first = worker.step(vec![], 1).await.leased;
    assert_eq!(first[0].task.id, id(0));
    let other = session(&url).await;
    other
        .batch_execute(
            "BEGIN; SELECT pg_advisory_xact_lock_shared(hashtext('interval_queue'), number::integer) \
             FROM interval_queue.interval_queue_task_queue; \
             SELECT id FROM interval_queue.interval_queue_task WHERE state = 'ready' ORDER BY due, added, position LIMIT 2 FOR UPDATE",
        )
        .await
        .unwrap();
    let mut ran = Vec::new();
    let mut leased = first;
    for _ in 0..3 {
        leased = worker.step(done(&leased), 1).await.leased;
        ran.extend(leased.iter().map(|leased| leased.task.id));
    }
    assert_eq!(ran, [3, 4, 5].map(id));
    let keyed = NewTask { key: Some(Key::new("k").unwrap()), ..task(20) };
    // At the same instant as the others, and behind them.
    tasks
        .apply(&mail(), Command::Add(Add { tasks: [keyed].into(), sequence: 8, ..Add::default() }))
        .await
        .unwrap();
    // A step that finds as many ready tasks as it wants does not look at it.
    let leased = worker.step(done(&leased), 1).await.leased;
    assert_eq!(leased[0].task.id, id(6));
    // One that finds fewer lets it in. That concerns others, so it waits for them.
    assert_eq!(kind(worker.try_step(vec![], 9).await), Unreachable);
    other.batch_execute("COMMIT").await.unwrap();
    worker.step.held = Some(Vec::new());
    let stepped = worker.step(done(&leased), 9).await;
    assert_eq!(stepped.leased.iter().map(|leased| leased.task.id).collect::<Vec<_>>(), [1, 2, 7, 20].map(id));
}

/// Somebody changes a task by hand and takes a while to commit, in the middle of a command.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_row_changed_by_hand_is_neither_lost_nor_skipped() {
    let server = server();
    let url = fresh_database(&server);
    let tasks = PostgresTasks::connect(&url).await.unwrap();
    tasks.apply(&mail(), add([task(1)])).await.unwrap();
    let (other, onlooker) = (session(&url).await, session(&url).await);
    other
        .batch_execute("BEGIN; UPDATE interval_queue.interval_queue_task SET tags = '[\"by hand\"]'")
        .await
        .unwrap();
    // A verb goes alone, and locks no row before it writes it.
    let selector = Selector::ids([id(1)]);
    let change =
        ChangeTasks { selector, verb: Verb::Cancel, after: None, watermark: None, limit: 10, dry_run: false };
    let cancel = async { tasks.apply(&mail(), Command::Change(Change::Tasks(change))).await };
    let committing = async {
        let waits =
            "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        while onlooker.query(waits, &[]).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        other.batch_execute("COMMIT").await.unwrap();
    };
    let (cancelled, ()) = tokio::join!(cancel, committing);
    cancelled.unwrap();
    let found = stored(&tasks, [1]).await;
    let found = &found[0].as_ref().unwrap().task;
    assert_eq!((found.state, found.tags.len()), (State::Cancelled, 1));
}
