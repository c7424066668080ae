//! The parser of the state file for the fuzz targets in `fuzz/`, which have bytes and no file. No part of the
//! public API.

use std::path::Path;

use interval_queue_contract::{QueueName, Record, StateError};

use crate::document::Document;

const PATH: &str = "/state.json";

/// The queues in a file of these bytes.
///
/// # Errors
///
/// Those of a file that cannot be used.
pub fn names(bytes: &[u8]) -> Result<Vec<QueueName>, StateError> {
    Document::parse(Path::new(PATH), bytes, None).map(Document::names)
}

/// The record of one queue.
///
/// # Errors
///
/// Those of a file or a record that cannot be used.
pub fn record(bytes: &[u8], queue: &QueueName) -> Result<Option<Record>, StateError> {
    Document::parse(Path::new(PATH), bytes, Some(queue))?.take(Path::new(PATH), queue)
}

/// The file after a command that put this record into it.
///
/// # Errors
///
/// Those of a file that cannot be used.
pub fn put(bytes: &[u8], queue: &QueueName, record: &Record) -> Result<Vec<u8>, StateError> {
    let mut document = Document::parse(Path::new(PATH), bytes, Some(queue))?;
    document.put(queue.clone(), record.clone());
    let mut written = Vec::new();
    document.write_to(&mut written).map(|()| written)
}
