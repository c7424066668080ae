//! `queue.json`: the part of a queue that must be kept if the index is lost.

use std::collections::BTreeMap;

use interval_queue_contract::{Micros, QueueName};
use interval_queue_task_contract::{Key, Kind, Rows, Schedule, Settings};
use serde::{Deserialize, Serialize};

use super::{TransactionError, index::Index};

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct QueueFile {
    /// The directory may have changed the name.
    pub(super) queue: QueueName,
    #[serde(default)]
    pub(super) paused: bool,
    #[serde(default)]
    pub(super) paused_kinds: Vec<Kind>,
    /// Times are in microseconds.
    #[serde(default)]
    pub(super) settings: Settings,
    /// Limits of single keys; 0: paused.
    #[serde(default)]
    pub(super) keys: BTreeMap<String, u32>,
    #[serde(default)]
    pub(super) schedules: Vec<Schedule>,
    /// Lower bound of the tokens of this queue.
    #[serde(default)]
    pub(super) incarnation: Micros,
    /// The longest of a busy worker.
    #[serde(default)]
    pub(super) longest_lease: Micros,
}

pub(super) fn text(index: &Index, queue: &QueueName) -> Result<String, TransactionError> {
    let mut tables = index.tables(queue);
    let row = tables.queue()?;
    let kinds = tables.kinds()?;
    let sql = "SELECT k.key, k.max_running FROM interval_queue_task_key k JOIN interval_queue_task_queue q \
               ON q.number = k.queue WHERE q.name = ?1 AND k.max_running IS NOT NULL";
    let mut limits = index.connection.prepare_cached(sql)?;
    let keys = limits.query_map([queue.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let sql = "SELECT coalesce(max(w.lease), 0) FROM interval_queue_task_worker w JOIN interval_queue_task_queue q \
               ON q.number = w.queue WHERE q.name = ?1";
    let longest: i64 = index.connection.prepare_cached(sql)?.query_row([queue.as_str()], |row| row.get(0))?;
    let file = QueueFile {
        longest_lease: u64::try_from(longest)
            .ok()
            .and_then(|lease| Micros::try_from(lease).ok())
            .unwrap_or_default(),
        queue: queue.clone(),
        paused: row.as_ref().is_some_and(|row| row.paused),
        paused_kinds: kinds.into_iter().filter(|kind| kind.paused).map(|kind| kind.kind).collect(),
        incarnation: row.as_ref().map_or(Micros::ZERO, |row| row.incarnation),
        settings: row.map(|row| row.settings).unwrap_or_default(),
        keys: keys.collect::<Result<_, _>>()?,
        schedules: tables.schedules()?,
    };
    let text = serde_json::to_string_pretty(&file);
    Ok(text.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))? + "\n")
}

impl QueueFile {
    pub(super) fn limits(&self) -> impl Iterator<Item = (Key, u32)> {
        self.keys.iter().filter_map(|(key, limit)| Some((Key::new(key.as_str()).ok()?, *limit)))
    }
}
