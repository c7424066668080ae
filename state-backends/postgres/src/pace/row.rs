//! Reads a queue's record.

use std::time::SystemTime;

use interval_queue_contract::{Micros, QueueName, Reading, Record, StateError, StateErrorKind};
use tokio_postgres::Row;

/// Also reads the server's clock and identity.
pub(super) fn read_record(row: &Row, queue: &QueueName) -> Result<(Option<Record>, Reading), StateError> {
    let unreadable = |error: tokio_postgres::Error| {
        StateError::new(StateErrorKind::Unsupported, "postgres answers with something else")
            .with_source(error)
    };
    let text: Option<&str> = row.try_get(0).map_err(unreadable)?;
    let now: SystemTime = row.try_get(1).map_err(unreadable)?;
    let began: SystemTime = row.try_get(2).map_err(unreadable)?;
    let record = text.map(Record::from_json).transpose().map_err(|error| {
        let what = match error.kind() {
            StateErrorKind::NewerVersion => "was written by a newer version: upgrade the program",
            _ => "cannot be used: put a good copy in its place, or delete its row to start over",
        };
        let text = format!("the record of queue {:?} in postgres {what}", queue.as_str());
        StateError::new(error.kind(), text).with_source(error)
    })?;
    Ok((record, Reading { now: micros(now), incarnation: micros(began).get().to_string() }))
}

fn micros(instant: SystemTime) -> Micros {
    let since = instant.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Micros::from_duration(since)
}
