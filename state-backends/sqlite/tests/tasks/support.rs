//! What the tests say to stored tasks.

use std::{path::Path, time::Duration};

use interval_queue_contract::StateError;
use interval_queue_sqlite::{Durability, SqliteStore, SqliteTasks};
pub(crate) use interval_queue_task_conformance::hand::*;

pub(crate) async fn open(path: &Path) -> SqliteTasks {
    try_open(path, Duration::from_secs(60)).await.unwrap()
}

pub(crate) async fn try_open(path: &Path, lock_timeout: Duration) -> Result<SqliteTasks, StateError> {
    let builder = SqliteStore::builder(path).durability(Durability::Relaxed).lock_timeout(lock_timeout);
    SqliteTasks::on(&builder.open().await?).await
}
