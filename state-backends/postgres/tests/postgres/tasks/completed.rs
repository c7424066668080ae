//! Runs that end within transactions of an application.

use interval_queue_contract::Micros;
use interval_queue_memory::MemoryTasks;
use interval_queue_postgres::PostgresTasks;
use interval_queue_task_contract::{
    Change, ChangeTasks, Command, Completed, Completion, Counted, Json, Key, Kind, Leased, NewEdge, NewTask,
    OnFailure, Outcome, Progress, Read, Reply, Selector, State, Step, Tag, Task, TaskStore, Unique, Until,
    Verb, WorkerId,
};
use tokio_postgres::Client;
use uuid::Uuid;

use super::support::*;
use crate::common::*;

const WORKER: u64 = 1;

fn worker(n: u64) -> WorkerId {
    WorkerId::new(Uuid::from_u64_pair(9, n))
}

/// Tasks beside a table of an application, and a session of it.
async fn shop(server: &PostgresServer) -> (PostgresTasks, Client) {
    let url = fresh_database(server);
    let store = PostgresStore::builder(&url).timeout(STALL_TIMEOUT).connect().await.unwrap();
    let tasks = PostgresTasks::on(&store).await.unwrap();
    let application = session(&url).await;
    application.batch_execute("CREATE TABLE effect (task integer)").await.unwrap();
    (tasks, application)
}

async fn effects(application: &Client) -> i64 {
    application.query_one("SELECT count(*) FROM effect", &[]).await.unwrap().get(0)
}

async fn row(tasks: &dyn TaskStore, n: u64) -> Task {
    match tasks.apply(&mail(), Command::Read(Read::Tasks(vec![id(n)]))).await.unwrap() {
        Reply::Tasks(mut found) => found.remove(0).unwrap().task,
        other => panic!("{other:?}"),
    }
}

fn end(leased: &Leased) -> Completion {
    done(std::slice::from_ref(leased)).remove(0)
}

fn keyed(n: u64) -> NewTask {
    NewTask { key: Some(Key::new("k").unwrap()), ..task(n) }
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_row_and_the_end_of_a_run_are_there_together_or_not_at_all() {
    let server = server();
    let (tasks, mut application) = shop(&server).await;
    tasks.apply(&mail(), add([task(1)])).await.unwrap();
    let mut hand = Hand::new(&tasks, WORKER);
    hand.step(vec![], 0).await;
    let leased = hand.step(vec![], 1).await.leased.remove(0);
    for commits in [false, true] {
        let transaction = application.transaction().await.unwrap();
        transaction.batch_execute("INSERT INTO effect VALUES (1)").await.unwrap();
        let completed =
            tasks.complete_within(&transaction, &mail(), worker(WORKER), &end(&leased)).await.unwrap();
        assert_eq!((completed.id, completed.state), (id(1), State::Done));
        let is = if commits {
            transaction.commit().await.unwrap();
            State::Done
        } else {
            transaction.rollback().await.unwrap();
            State::Leased
        };
        assert_eq!((row(&tasks, 1).await.state, effects(&application).await), (is, i64::from(commits)));
    }
    assert_eq!(hand.step(vec![end(&leased)], 0).await.lost, [id(1)], "it is said too late");
    let counts = match tasks.apply(&mail(), Command::Read(Read::Overview)).await.unwrap() {
        Reply::Overview(overview) => overview.counts,
        other => panic!("{other:?}"),
    };
    let count = |of| counts.iter().filter(|(_, counted, _)| *counted == of).map(|(.., n)| n).sum::<u64>();
    assert_eq!(
        [Counted::Now(State::Leased), Counted::Now(State::Done), Counted::EverDone].map(count),
        [0, 1, 1]
    );
    let times = Read::Times { kind: Kind::default(), from: Micros::ZERO };
    let Reply::Times(hours) = tasks.apply(&mail(), Command::Read(times)).await.unwrap() else {
        panic!("no times")
    };
    let run = &hours.last().unwrap().run;
    let ms = run.total.get() / 1_000;
    assert_eq!(run.number(), 1);
    assert_eq!(run.counts[(u64::BITS - ms.leading_zeros()) as usize], 1, "{ms} ms: {run:?}");
}

/// It is open for longer than a command of a worker may take.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn nobody_waits_for_a_transaction_that_has_completed() {
    let server = server();
    let (tasks, mut application) = shop(&server).await;
    let edge = NewEdge { up: id(1), name: None, on_failure: OnFailure::Cancel };
    tasks
        .apply(&mail(), add([keyed(1), keyed(2), NewTask { edges: vec![edge], ..task(3) }, task(4)]))
        .await
        .unwrap();
    let (mut own, mut other) = (Hand::new(&tasks, WORKER), Hand::new(&tasks, 2));
    own.step(vec![], 0).await;
    other.step(vec![], 0).await;
    let leased = own.step(vec![], 1).await.leased.remove(0);
    assert_eq!(leased.task.id, id(1));
    let transaction = application.transaction().await.unwrap();
    let _completed =
        tasks.complete_within(&transaction, &mail(), worker(WORKER), &end(&leased)).await.unwrap();
    for n in 0..4_u32 {
        let token = leased.task.token;
        let progress = Progress { done: n.into(), total: 4, text: String::new() };
        own.step.progress = vec![(id(1), token, progress)];
        own.step.held = Some(vec![(id(1), token)]);
        let stepped = own.step(vec![], 0).await;
        assert!(stepped.lost.is_empty(), "{stepped:?}");
        let new = other.step(vec![], 2).await.leased;
        assert!(new.iter().all(|leased| leased.task.id == id(4)), "the key is held: {new:?}");
        let selector = Selector::ids([id(1)]);
        let tag = Change::Tasks(ChangeTasks {
            selector,
            verb: Verb::Tag(Tag::new("seen").unwrap()),
            after: None,
            watermark: None,
            limit: 1,
            dry_run: n < 3,
        });
        tasks.apply(&mail(), Command::Change(tag)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    transaction.commit().await.unwrap();
    assert_eq!(row(&tasks, 1).await.state, State::Done);
    let mut next: Vec<_> = other.step(vec![], 9).await.leased.iter().map(|leased| leased.task.id).collect();
    next.sort();
    assert_eq!(next, [id(2), id(3)], "its key is free, and it is told");
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_commit_fails_if_the_token_is_not_in_force_any_more() {
    let server = server();
    let (tasks, mut application) = shop(&server).await;
    tasks.apply(&mail(), add([task(1)])).await.unwrap();
    let mut hand = Hand::new(&tasks, WORKER);
    hand.step(vec![], 0).await;
    let first = hand.step(vec![], 1).await.leased.remove(0);
    let transaction = application.transaction().await.unwrap();
    transaction.batch_execute("INSERT INTO effect VALUES (1)").await.unwrap();
    let _completed =
        tasks.complete_within(&transaction, &mail(), worker(WORKER), &end(&first)).await.unwrap();
    // It is given back, and another run has it.
    let second =
        hand.step(vec![Completion { outcome: Outcome::Released, ..end(&first) }], 1).await.leased.remove(0);
    assert!(second.task.token > first.task.token);
    let error = transaction.commit().await.unwrap_err();
    let said = error.as_db_error().unwrap().message();
    assert!(said.contains("is not leased with token") && error.code().unwrap().code() == "55000", "{said}");
    assert_eq!((row(&tasks, 1).await.state, effects(&application).await), (State::Leased, 0));
    // At once, where it is known at once.
    let transaction = application.transaction().await.unwrap();
    let error = tasks.complete_within(&transaction, &mail(), worker(WORKER), &end(&first)).await.unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Superseded, "{error}");
    transaction.batch_execute("INSERT INTO effect VALUES (1)").await.unwrap();
    let _completed =
        tasks.complete_within(&transaction, &mail(), worker(WORKER), &end(&second)).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!((row(&tasks, 1).await.state, effects(&application).await), (State::Done, 1));
}

/// Whether the task is cancelled before the run is completed, or between that and the commit.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_cancelled_run_is_not_committed() {
    let server = server();
    let (tasks, mut application) = shop(&server).await;
    tasks.apply(&mail(), add([task(1)])).await.unwrap();
    let mut hand = Hand::new(&tasks, WORKER);
    hand.step(vec![], 0).await;
    let leased = hand.step(vec![], 1).await.leased.remove(0);
    let transaction = application.transaction().await.unwrap();
    transaction.batch_execute("INSERT INTO effect VALUES (1)").await.unwrap();
    let _completed =
        tasks.complete_within(&transaction, &mail(), worker(WORKER), &end(&leased)).await.unwrap();
    let cancel = ChangeTasks {
        selector: Selector::ids([id(1)]),
        verb: Verb::Cancel,
        after: None,
        watermark: None,
        limit: 1,
        dry_run: false,
    };
    tasks.apply(&mail(), Command::Change(Change::Tasks(cancel))).await.unwrap();
    let error = transaction.commit().await.unwrap_err();
    let said = error.as_db_error().unwrap().message();
    assert!(
        said.contains("was cancelled while it ran: roll back its effects")
            && error.code().unwrap().code() == "55000",
        "{said}"
    );
    let transaction = application.transaction().await.unwrap();
    for outcome in [Outcome::Done(Json::default()), Outcome::Failed("never".into())] {
        let complete = Completion { outcome, ..end(&leased) };
        let error =
            tasks.complete_within(&transaction, &mail(), worker(WORKER), &complete).await.unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Superseded, "{error}");
        assert!(error.to_string().contains("was cancelled while it ran: roll back its effects"), "{error}");
    }
    transaction.rollback().await.unwrap();
    assert_eq!((row(&tasks, 1).await.state, effects(&application).await), (State::Leased, 0));
    hand.step(vec![Completion { outcome: Outcome::Error("rolled back".into()), ..end(&leased) }], 0).await;
    assert_eq!(row(&tasks, 1).await.state, State::Cancelled);
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_failed_completion_leaves_the_transaction_as_it_was() {
    let server = server();
    let (tasks, mut application) = shop(&server).await;
    tasks.apply(&mail(), add([task(1)])).await.unwrap();
    let mut hand = Hand::new(&tasks, WORKER);
    hand.step(vec![], 0).await;
    let leased = hand.step(vec![], 1).await.leased.remove(0);
    let transaction = application.transaction().await.unwrap();
    let large = Outcome::Done(Json::of(&"x".repeat(2 << 20)).unwrap());
    for outcome in [large, Outcome::Error("no".into()), Outcome::Released] {
        let complete = Completion { outcome, ..end(&leased) };
        let error =
            tasks.complete_within(&transaction, &mail(), worker(WORKER), &complete).await.unwrap_err();
        assert_eq!(error.kind(), Invalid, "{error}");
    }
    let elsewhere = QueueName::new("elsewhere").unwrap();
    let error =
        tasks.complete_within(&transaction, &elsewhere, worker(WORKER), &end(&leased)).await.unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Superseded, "{error}");
    transaction.batch_execute("INSERT INTO effect VALUES (1)").await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!((row(&tasks, 1).await.state, effects(&application).await), (State::Leased, 1));
}

/// Without what another clock or another worker tells apart.
fn alike(x: Task) -> Task {
    let nothing = interval_queue_contract::Micros::ZERO;
    Task {
        due: 0,
        added: nothing,
        token: Default::default(),
        leased: None,
        ended: x.ended.map(|_| nothing),
        ended_lease_clock: x.ended_lease_clock.map(|_| nothing),
        ..x
    }
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn the_function_writes_the_row_that_the_rules_write() {
    let server = server();
    let (tasks, mut application) = shop(&server).await;
    let memory = MemoryTasks::new();
    let named = NewTask {
        unique: Some(Unique { name: Key::new("u").unwrap(), until: Until::Ended }),
        ordered: true,
        ..keyed(5)
    };
    let stores: [&dyn TaskStore; 2] = [&tasks, &memory];
    let mut runs = Vec::new();
    for store in stores {
        store.apply(&mail(), add([task(1), task(2), task(3), keyed(4), named.clone()])).await.unwrap();
        let first = Step::first(worker(WORKER), [Default::default()], LEASE);
        let step = async |step| match store.apply(&mail(), Command::Step(step)).await.unwrap() {
            Reply::Stepped(stepped) => stepped,
            other => panic!("{other:?}"),
        };
        step(first.clone()).await;
        let mut leased =
            step(Step { sequence: 2, acknowledged: 1, held: None, want: 9, ..first }).await.leased;
        leased.sort_by_key(|leased| leased.task.id);
        assert_eq!(leased.len(), 4);
        let change = ChangeTasks {
            selector: Selector::ids([id(1), id(3)]),
            verb: Verb::Release,
            after: None,
            watermark: None,
            limit: 9,
            dry_run: false,
        };
        store.apply(&mail(), Command::Change(Change::Tasks(change))).await.unwrap();
        runs.push(leased);
    }
    let outcomes = [
        Outcome::Done(Json::of(&[1, 2]).unwrap()),
        Outcome::Failed("never".into()),
        Outcome::Failed("stopped".into()),
        Outcome::Done(Json::default()),
    ];
    for (n, outcome) in outcomes.into_iter().enumerate() {
        let of = |leased: &Leased| Completion { outcome: outcome.clone(), ..end(leased) };
        let transaction = application.transaction().await.unwrap();
        let _completed: Completed =
            tasks.complete_within(&transaction, &mail(), worker(WORKER), &of(&runs[0][n])).await.unwrap();
        transaction.commit().await.unwrap();
        let _completed = memory.complete_within(&mail(), worker(WORKER), &of(&runs[1][n])).unwrap();
    }
    for n in 1..=5 {
        assert_eq!(alike(row(&tasks, n).await), alike(row(&memory, n).await), "task {n}");
    }
    let results = async |store: &dyn TaskStore| match store
        .apply(&mail(), Command::Read(Read::Tasks((1..=5).map(id).collect())))
        .await
        .unwrap()
    {
        Reply::Tasks(found) => found.into_iter().map(|stored| stored.unwrap().result).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(results(&tasks).await, results(&memory).await);
    let counts = async |store: &dyn TaskStore| match store
        .apply(&mail(), Command::Read(Read::Overview))
        .await
        .unwrap()
    {
        Reply::Overview(overview) => overview.counts.into_iter().filter(|(.., n)| *n > 0).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(counts(&tasks).await, counts(&memory).await);
}

/// Sessions of the application are ended by the server at any moment, also between the commit and its answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn effects_happen_exactly_once_over_many_broken_sessions() {
    const TASKS: u64 = 60;
    let server = server();
    let url = fresh_database(&server);
    let tasks = PostgresTasks::connect(&url).await.unwrap();
    let watcher = session(&url).await;
    watcher.batch_execute("CREATE TABLE effect (task integer)").await.unwrap();
    tasks.apply(&mail(), add((0..TASKS).map(|n| if n % 3 == 0 { keyed(n) } else { task(n) }))).await.unwrap();
    let mut hand = Hand::new(&tasks, WORKER);
    hand.step(vec![], 0).await;
    let (mut held, mut broken) = (Vec::<Leased>::new(), 0);
    let mut application = session(&url).await;
    let count = "SELECT count(*) FROM interval_queue.interval_queue_task WHERE ended IS NULL";
    for round in 0.. {
        // What was completed is not held any more; the store is asked what is.
        held.extend(hand.step(vec![], 5_u32.saturating_sub(held.len() as u32)).await.leased);
        let left: i64 = watcher.query_one(count, &[]).await.unwrap().get(0);
        if left == 0 {
            break;
        }
        assert!(round < 1_000, "{left} are left");
        for leased in std::mem::take(&mut held) {
            let process: i32 = loop {
                match application.query_one("SELECT pg_backend_pid()", &[]).await {
                    Ok(row) => break row.get(0),
                    Err(_) => application = session(&url).await,
                }
            };
            let ended = async {
                let transaction = application.transaction().await.map_err(drop)?;
                transaction.batch_execute("INSERT INTO effect VALUES (1)").await.map_err(drop)?;
                let completed =
                    tasks.complete_within(&transaction, &mail(), worker(WORKER), &end(&leased)).await;
                match completed {
                    Ok(_) => transaction.commit().await.map_err(drop),
                    // A commit of before that was not answered.
                    Err(error) if error.kind() == StateErrorKind::Superseded => Ok(()),
                    Err(_) => Err(()),
                }
            };
            let harm = async {
                if round % 2 == 0 {
                    tokio::time::sleep(Duration::from_micros(u64::from(round as u32) * 97 % 3_000)).await;
                    watcher.execute("SELECT pg_terminate_backend($1)", &[&process]).await.unwrap();
                }
            };
            let (ended, ()) = tokio::join!(ended, harm);
            if ended.is_err() {
                broken += 1;
                held.push(leased);
            }
        }
    }
    assert_eq!(effects(&watcher).await, TASKS as i64);
    assert!(broken > 0, "no session was broken");
}
