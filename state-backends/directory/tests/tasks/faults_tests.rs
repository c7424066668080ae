//! A store that dies between any two operations of a command leaves nothing half done: the next command repairs it.
#![cfg(unix)]

use std::{collections::BTreeSet, fs, path::Path};

use interval_queue_contract::StateError;
use interval_queue_directory::{DirectoryStore, DirectoryTasks, Fsync};
use interval_queue_task_contract::{
    Change, ChangeTasks, Command, Outcome, Selector, State, TaskId, TaskStore, Verb,
};

use super::support::{
    FLOWS, Hand, add, agree, all, done, ended, files, flow, id, mail, open, overview, task,
};

/// What was answered before the store died.
#[derive(Debug, Default)]
struct Answered {
    added: BTreeSet<TaskId>,
    done: BTreeSet<TaskId>,
    removed: BTreeSet<TaskId>,
}

fn verb(verb: Verb, n: u64) -> Command {
    let selector = Selector { states: State::ALL.into(), ..Selector::ids([id(n)]) };
    let change = ChangeTasks { selector, verb, after: None, watermark: None, limit: 10, dry_run: false };
    Command::Change(Change::Tasks(change))
}

/// A bit of everything that moves, writes or removes files.
async fn scenario(store: &DirectoryTasks, answered: &mut Answered) -> Result<(), StateError> {
    store.apply(&mail(), add([task(1), task(2), task(3), task(4)])).await?;
    answered.added.extend([1, 2, 3, 4].map(id));
    let mut hand = Hand::new(store, 1);
    let leased = hand.try_step(Vec::new(), 3).await?.leased;
    hand.try_step(done(&leased[..1]), 0).await?;
    answered.done.insert(leased[0].task.id);
    hand.try_step(ended(&leased[1..2], |_| Outcome::Failed("no".into())), 0).await?;
    fs::write(store.path().join("mail/drop/.new"), format!("{{\"payload\": 5, \"id\": \"{}\"}}", id(5)))
        .unwrap();
    fs::rename(store.path().join("mail/drop/.new"), store.path().join("mail/drop/new")).unwrap();
    answered.added.insert(id(5));
    hand.try_step(Vec::new(), 0).await?;
    store.apply(&mail(), verb(Verb::Retry, 2)).await?;
    store.apply(&mail(), verb(Verb::Purge, 1)).await?;
    answered.removed.insert(id(1));
    hand.try_step(ended(&leased[2..], |_| Outcome::Error("again".into())), 0).await?;
    Ok(())
}

/// All is there, in its one place, and goes on to its end.
async fn is_in_order(path: &Path, answered: &Answered, n: i64) {
    let store = open(path).await;
    let mut hand = Hand::new(&store, 2);
    hand.step(Vec::new(), 0).await;
    overview(&store).await;
    agree(&store).await;
    let stored = all(&store, &mail()).await;
    let there: BTreeSet<_> = stored.iter().map(|stored| stored.task.id).collect();
    assert!(answered.added.is_subset(&there), "died before operation {n}: {answered:?}, {there:?}");
    let batch = [1, 2, 3, 4].map(id).iter().filter(|id| there.contains(id)).count();
    assert!(batch == 0 || batch == 4, "died before operation {n}: a batch is there as a whole or not at all");
    for stored in &stored {
        let x = &stored.task;
        let was_done = answered.done.contains(&x.id) && !answered.removed.contains(&x.id);
        let is_done = matches!(x.state, State::Done | State::Purged);
        assert!(!was_done || is_done, "died before operation {n}: {} is {}", x.id, x.state);
        assert_eq!(x.state == State::Done, stored.result.is_some(), "died before operation {n}: {}", x.id);
    }
    // What a person did not remove is there, with its text.
    let gone = stored.iter().find(|stored| stored.task.state == State::Purged && stored.task.id != id(1));
    assert!(gone.is_none(), "died before operation {n}: {gone:?}");
    let aside = files(path, "set-aside");
    assert!(aside.is_empty(), "died before operation {n}: {aside:?}");
    let temporary = fs::read_dir(path.join("tmp")).into_iter().flatten().count();
    assert!(temporary <= 8, "died before operation {n}: {temporary} files were left");
    // What was leased when it died is its worker's; the rest runs.
    let leased = hand.step(Vec::new(), 9).await.leased;
    hand.step(done(&leased), 0).await;
    overview(&store).await;
    agree(&store).await;
}

async fn die_everywhere(fsync: Fsync) {
    let mut n = 0;
    loop {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs");
        let opened = DirectoryStore::builder(&path).fsync(fsync).open().await.unwrap();
        let store = DirectoryTasks::on(&opened).await.unwrap();
        opened.die_before(n);
        let mut answered = Answered::default();
        let outcome = scenario(&store, &mut answered).await;
        let is_dead = opened.is_dead();
        assert!(outcome.is_ok() || is_dead, "{outcome:?}");
        drop(store);
        is_in_order(&path, &answered, n).await;
        if !is_dead {
            break;
        }
        n += 1;
    }
    assert!(n > 40, "it did {n} operations");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_dies_anywhere_is_repaired() {
    die_everywhere(Fsync::Never).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_flushes_and_dies_anywhere_is_repaired() {
    die_everywhere(Fsync::Always).await;
}

/// An operation fails, as on a disk that is full for a moment: what was committed before is carried out before anything
/// else is committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_of_which_one_operation_fails_goes_on() {
    for n in 0.. {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs");
        let opened = DirectoryStore::builder(&path).open().await.unwrap();
        let store = DirectoryTasks::on(&opened).await.unwrap();
        opened.fail_at(n);
        let mut answered = Answered::default();
        let outcome = scenario(&store, &mut answered).await;
        let has_failed = !opened.is_to_fail();
        assert!(outcome.is_ok() || has_failed, "{outcome:?}");
        if !has_failed {
            assert!(n > 40, "it did {n} operations");
            break;
        }
        store.apply(&mail(), add([task(6)])).await.unwrap();
        overview(&store).await;
        agree(&store).await;
        drop(store);
        is_in_order(&path, &answered, n).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_add_does_file_operations_in_proportion_to_its_tasks() {
    const MANY: i64 = 1 << 40;
    for count in FLOWS {
        let directory = tempfile::tempdir().unwrap();
        let opened = DirectoryStore::builder(directory.path().join("jobs")).open().await.unwrap();
        let store = DirectoryTasks::on(&opened).await.unwrap();
        opened.die_before(MANY);
        store.apply(&mail(), flow(count)).await.unwrap();
        let operations = (MANY - opened.operations_left()).unsigned_abs();
        // Beyond 1 MiB of texts in a command, each is written under another name first.
        assert!(operations <= 3 * count + 500, "{count} tasks: {operations} operations on files");
    }
}
