//! Tasks that are added, and runs that end, within transactions of an application.

use std::path::{Path, PathBuf};

use futures::StreamExt;
use interval_queue_contract::{Micros, StateErrorKind};
use interval_queue_sqlite::SqliteTasks;
use interval_queue_task_contract::{
    Add, Added, Completion, Json, Key, Leased, NewEdge, NewTask, OnConflict, OnFailure, Outcome, State,
    TaskStore, Unique, Until,
};
use rusqlite::{Connection, TransactionBehavior};

use super::support::{Hand, add, all, done, id, mail, open, task, worker};

/// A database with a table of an application, and tasks beside it.
async fn shop() -> (tempfile::TempDir, PathBuf, SqliteTasks) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.db");
    let tasks = open(&path).await;
    tasks.apply(&mail(), add([])).await.unwrap();
    letters(&path).execute_batch("CREATE TABLE letter (task INTEGER NOT NULL)").unwrap();
    (directory, path, tasks)
}

fn letters(path: &Path) -> Connection {
    Connection::open(path).unwrap()
}

fn write(on: &Connection, n: i64) {
    on.execute("INSERT INTO letter VALUES (?1)", [n]).unwrap();
}

fn written(path: &Path) -> Vec<i64> {
    let on = letters(path);
    let mut all = on.prepare("SELECT task FROM letter ORDER BY task").unwrap();
    all.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn these(tasks: impl IntoIterator<Item = NewTask>) -> Add {
    Add { tasks: tasks.into_iter().collect(), sequence: 0, age: Micros::ZERO }
}

fn named(n: u64, on_conflict: OnConflict) -> NewTask {
    let unique = Some(Unique { name: Key::new("only").unwrap(), until: Until::Ended });
    NewTask { unique, on_conflict, ..task(n) }
}

fn end(leased: &Leased) -> Completion {
    done(std::slice::from_ref(leased)).remove(0)
}

async fn states(tasks: &SqliteTasks) -> Vec<State> {
    all(tasks, &mail()).await.iter().map(|stored| stored.task.state).collect()
}

#[tokio::test]
async fn a_row_and_its_task_are_there_together_or_not_at_all() {
    let (_directory, path, tasks) = shop().await;
    let mut database = letters(&path);
    for (n, commits) in [(1, true), (2, false), (3, true)] {
        let transaction = database.transaction().unwrap();
        write(&transaction, n as i64);
        let added = tasks.add_within(&transaction, &mail(), these([task(n), task(n + 10)])).unwrap();
        assert_eq!(added, [Added::New(id(n)), Added::New(id(n + 10))]);
        if commits { transaction.commit().unwrap() } else { transaction.rollback().unwrap() }
    }
    assert_eq!(written(&path), [1, 3]);
    let stored = all(&tasks, &mail()).await;
    assert_eq!(stored.iter().map(|stored| stored.task.id).collect::<Vec<_>>(), [1, 3, 11, 13].map(id));
    // What is counted is what is there.
    let mut hand = Hand::new(&tasks, 1);
    hand.step(Vec::new(), 0).await;
    assert_eq!(hand.step(Vec::new(), 9).await.leased.len(), 4);
}

#[tokio::test]
async fn a_row_and_the_end_of_a_run_are_there_together_or_not_at_all() {
    let (_directory, path, tasks) = shop().await;
    tasks.apply(&mail(), add([task(1)])).await.unwrap();
    let mut hand = Hand::new(&tasks, 1);
    hand.step(Vec::new(), 0).await;
    let leased = hand.step(Vec::new(), 1).await.leased.remove(0);
    let mut database = letters(&path);
    for commits in [false, true] {
        let transaction = database.transaction().unwrap();
        write(&transaction, 1);
        let completed = tasks.complete_within(&transaction, &mail(), worker(1), &end(&leased)).unwrap();
        assert_eq!((completed.id, completed.state), (id(1), State::Done));
        if commits {
            transaction.commit().unwrap()
        } else {
            transaction.rollback().unwrap()
        }
        assert_eq!(states(&tasks).await, [if commits { State::Done } else { State::Leased }]);
        assert_eq!(written(&path).len(), usize::from(commits));
    }
    assert_eq!(all(&tasks, &mail()).await[0].result, Some(leased.payload.clone()));
    // The worker says it as well: it comes too late.
    assert_eq!(hand.step(done(&[leased]), 0).await.lost, [id(1)]);
}

#[tokio::test]
async fn an_invalid_token_is_rejected_and_the_transaction_goes_on() {
    let (_directory, path, tasks) = shop().await;
    tasks.apply(&mail(), add([task(1)])).await.unwrap();
    let mut hand = Hand::new(&tasks, 1);
    hand.step(Vec::new(), 0).await;
    let leased = hand.step(Vec::new(), 1).await.leased.remove(0);
    let given_back = Completion { outcome: Outcome::Released, ..end(&leased) };
    hand.step(vec![given_back], 0).await;
    let mut database = letters(&path);
    let transaction = database.transaction().unwrap();
    write(&transaction, 1);
    let error = tasks.complete_within(&transaction, &mail(), worker(1), &end(&leased)).unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Superseded, "{error}");
    assert!(error.to_string().contains("roll back"), "{error}");
    write(&transaction, 2);
    transaction.commit().unwrap();
    assert_eq!(written(&path), [1, 2]);
    assert_eq!(states(&tasks).await, [State::Ready]);
}

#[tokio::test]
async fn an_add_that_is_refused_leaves_the_transaction_as_it_was() {
    let (_directory, path, tasks) = shop().await;
    tasks.apply(&mail(), add([named(1, OnConflict::Keep)])).await.unwrap();
    let mut database = letters(&path);
    let transaction = database.transaction().unwrap();
    write(&transaction, 1);
    tasks.add_within(&transaction, &mail(), these([task(2)])).unwrap();
    let edge = |up| NewEdge { up, name: None, on_failure: OnFailure::Cancel };
    for (refused, kind) in [
        (vec![task(3), named(4, OnConflict::Refuse)], StateErrorKind::Conflict),
        (vec![task(3), NewTask { edges: vec![edge(id(99))], ..task(4) }], StateErrorKind::NotFound),
        (vec![task(3), NewTask { weight: 0, ..task(4) }], StateErrorKind::Invalid),
        (
            vec![NewTask { payload: Json::of(&"x".repeat(2 << 20)).unwrap(), ..task(3) }],
            StateErrorKind::Invalid,
        ),
    ] {
        let error = tasks.add_within(&transaction, &mail(), these(refused)).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
    let kept = tasks.add_within(&transaction, &mail(), these([named(5, OnConflict::Keep), task(2)])).unwrap();
    assert_eq!(kept, [Added::Kept(id(1)), Added::Again(id(2))]);
    let behind = NewTask { edges: vec![edge(id(1)), edge(id(2))], ..task(6) };
    tasks.add_within(&transaction, &mail(), these([behind])).unwrap();
    transaction.commit().unwrap();
    let there: Vec<_> = all(&tasks, &mail()).await.iter().map(|stored| stored.task.id).collect();
    assert_eq!((there, written(&path)), ([1, 2, 6].map(id).into(), vec![1]));
    // Those upstream end within one transaction, and it goes on.
    let mut hand = Hand::new(&tasks, 1);
    hand.step(Vec::new(), 0).await;
    let leased = hand.step(Vec::new(), 9).await.leased;
    let transaction = database.transaction().unwrap();
    for leased in &leased {
        let _completed = tasks.complete_within(&transaction, &mail(), worker(1), &end(leased)).unwrap();
    }
    transaction.commit().unwrap();
    let next = hand.step(Vec::new(), 9).await.leased;
    assert_eq!(next.iter().map(|leased| leased.task.id).collect::<Vec<_>>(), [id(6)]);
}

#[tokio::test]
async fn a_connection_that_cannot_be_used_is_refused() {
    let (directory, path, tasks) = shop().await;
    let refusal = |on: &Connection| {
        let error = tasks.add_within(on, &mail(), these([task(1)])).unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Invalid, "{error}");
        error.to_string()
    };
    assert!(refusal(&letters(&path)).contains("is in no transaction"));
    let elsewhere = directory.path().join("other.db");
    let mut other = letters(&elsewhere);
    let said = refusal(&other.transaction().unwrap());
    assert!(said.contains("other.db") && said.contains("shop.db"), "{said}");
    let mut memory = Connection::open_in_memory().unwrap();
    assert!(refusal(&memory.transaction().unwrap()).contains("in memory"));
    assert!(!elsewhere.exists() || std::fs::metadata(&elsewhere).unwrap().len() == 0, "it was left alone");
}

#[cfg(unix)]
#[tokio::test]
async fn by_another_name_it_is_the_same_file() {
    let (directory, path, tasks) = shop().await;
    let link = directory.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let mut linked = letters(&link);
    let transaction = linked.transaction().unwrap();
    tasks.add_within(&transaction, &mail(), these([task(1)])).unwrap();
    transaction.commit().unwrap();
    assert_eq!(states(&tasks).await.len(), 1);
}

#[tokio::test]
async fn missing_tables_and_a_missing_queue_are_created() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.db");
    let mut database = letters(&path);
    database.execute_batch("CREATE TABLE letter (task INTEGER NOT NULL)").unwrap();
    let tasks = open(&path).await;
    for commits in [false, true] {
        let transaction = database.transaction().unwrap();
        write(&transaction, 1);
        tasks.add_within(&transaction, &mail(), these([task(1)])).unwrap();
        if commits {
            transaction.commit().unwrap()
        } else {
            transaction.rollback().unwrap()
        }
        assert_eq!(tasks.queues().await.unwrap().len(), usize::from(commits));
    }
    let mut hand = Hand::new(&tasks, 1);
    hand.step(Vec::new(), 0).await;
    assert_eq!(hand.step(Vec::new(), 1).await.leased.len(), 1);
}

#[tokio::test]
async fn a_transaction_blocked_by_others_gets_an_error_to_retry() {
    let (_directory, path, tasks) = shop().await;
    let (mut here, mut there) = (letters(&path), letters(&path));
    here.busy_timeout(std::time::Duration::ZERO).unwrap();
    // Somebody else writes.
    let other = there.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let transaction = here.transaction().unwrap();
    let error = tasks.add_within(&transaction, &mail(), these([task(1)])).unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Unreachable);
    assert!(error.to_string().contains("is held by another transaction"), "{error}");
    other.commit().unwrap();
    tasks.add_within(&transaction, &mail(), these([task(1)])).unwrap();
    transaction.rollback().unwrap();
    // It has read, and others have written since.
    let transaction = here.transaction().unwrap();
    let _: i64 = transaction.query_row("SELECT count(*) FROM letter", [], |row| row.get(0)).unwrap();
    write(&there, 1);
    let error = tasks.add_within(&transaction, &mail(), these([task(1)])).unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Unreachable);
    assert!(error.to_string().contains("others have written"), "{error}");
    transaction.rollback().unwrap();
    assert_eq!(states(&tasks).await, []);
}

#[tokio::test]
async fn the_store_waits_for_a_transaction_and_goes_on_after_it() {
    let (_directory, path, tasks) = shop().await;
    let mut database = letters(&path);
    let transaction = database.transaction().unwrap();
    tasks.add_within(&transaction, &mail(), these([task(1)])).unwrap();
    let waits = tasks.clone();
    let step = tokio::spawn(async move { waits.apply(&mail(), add([task(2)])).await });
    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    assert!(!step.is_finished());
    transaction.commit().unwrap();
    step.await.unwrap().unwrap();
    assert_eq!(states(&tasks).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_are_notified_by_the_commit() {
    let (_directory, path, tasks) = shop().await;
    let mut changes = tasks.changes(&mail()).await.unwrap();
    let mut database = letters(&path);
    let transaction = database.transaction().unwrap();
    tasks.add_within(&transaction, &mail(), these([task(1)])).unwrap();
    let early = tokio::time::timeout(std::time::Duration::from_millis(50), changes.next()).await;
    assert!(early.is_err(), "it is not committed");
    transaction.commit().unwrap();
    changes.next().await.unwrap();
    // The end of a run that holds a key is news as well.
    let key = Some(Key::new("k").unwrap());
    let keyed = |n| NewTask { key: key.clone(), ..task(n) };
    tasks.apply(&mail(), add([keyed(2), keyed(3)])).await.unwrap();
    let mut hand = Hand::new(&tasks, 1);
    hand.step(Vec::new(), 0).await;
    let leased = hand.step(Vec::new(), 9).await.leased;
    let leased = leased.iter().find(|leased| leased.task.id == id(2)).unwrap();
    let mut changes = tasks.changes(&mail()).await.unwrap();
    let transaction = database.transaction().unwrap();
    let _completed = tasks.complete_within(&transaction, &mail(), worker(1), &end(leased)).unwrap();
    transaction.commit().unwrap();
    changes.next().await.unwrap();
}
