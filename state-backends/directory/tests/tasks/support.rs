//! What the tests say to stored tasks, and what they see in the directory.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use interval_queue_contract::StateError;
use interval_queue_directory::{DirectoryStore, DirectoryTasks};
pub(crate) use interval_queue_task_conformance::hand::*;
use interval_queue_task_contract::{Command, Overview, Read, Reply, State, TaskId, TaskStore};

pub(crate) async fn open(path: &Path) -> DirectoryTasks {
    try_open(path, Duration::from_secs(60)).await.unwrap()
}

pub(crate) async fn try_open(path: &Path, lock_timeout: Duration) -> Result<DirectoryTasks, StateError> {
    DirectoryTasks::on(&DirectoryStore::builder(path).lock_timeout(lock_timeout).open().await?).await
}

/// A look at the queue, which notices what was done by hand.
pub(crate) async fn overview(store: &dyn TaskStore) -> Overview {
    match store.apply(&mail(), Command::Read(Read::Overview)).await.unwrap() {
        Reply::Overview(overview) => *overview,
        other => panic!("{other:?}"),
    }
}

/// How many tasks are in a state.
pub(crate) fn count(overview: &Overview, state: State) -> u64 {
    let of_state = |counted| counted == interval_queue_task_contract::Counted::Now(state);
    overview.counts.iter().filter(|&&(_, counted, _)| of_state(counted)).map(|&(.., n)| n).sum()
}

/// The files of tasks in a state of the queue, sorted.
pub(crate) fn files(path: &Path, state: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![path.join("mail").join(state)];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() { directories.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// The file of a task in a state.
pub(crate) fn file(path: &Path, state: &str, id: TaskId) -> PathBuf {
    let name = format!("{id}.json");
    let is_it = |path: &PathBuf| path.file_name().is_some_and(|found| *found == *name);
    files(path, state).into_iter().find(is_it).unwrap_or_else(|| panic!("task {id} has no file in {state}"))
}

/// Whether each task of the index has its one file, in the place of its state, and there are no others.
pub(crate) async fn agree(store: &DirectoryTasks) {
    let mut expected: Vec<(TaskId, &str)> = Vec::new();
    for stored in all(store, &mail()).await {
        if stored.task.state != State::Purged {
            assert!(stored.payload.is_some(), "{}", stored.task.id);
            expected.push((stored.task.id, stored.task.state.as_str()));
        }
    }
    expected.sort();
    let mut found = Vec::new();
    for state in State::ALL.map(State::as_str) {
        for file in files(store.path(), state) {
            found.push((file.file_stem().unwrap().to_str().unwrap().parse::<TaskId>().unwrap(), state));
        }
    }
    found.sort();
    assert_eq!(found, expected);
}
