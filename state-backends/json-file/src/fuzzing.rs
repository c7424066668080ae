//! The parser of the state file, for the fuzz targets in `fuzz/`. Not public API.
#![allow(missing_docs, clippy::missing_errors_doc, reason = "each does what its name says")]

use std::path::Path;

use interval_queue_contract::{QueueName, Record, StateError};

use crate::pace::document::Document;

fn parse<'a>(bytes: &'a [u8], wanted: Option<&QueueName>) -> Result<Document<'a>, StateError> {
    Document::parse(Path::new("/state.json"), Some(bytes), wanted)
}

pub fn names(bytes: &[u8]) -> Result<Vec<QueueName>, StateError> {
    parse(bytes, None).map(Document::names)
}

pub fn record(bytes: &[u8], queue: &QueueName) -> Result<Option<Record>, StateError> {
    parse(bytes, Some(queue))?.take(Path::new("/state.json"), queue)
}

pub fn put(bytes: &[u8], queue: &QueueName, record: &Record) -> Result<Vec<u8>, StateError> {
    let mut document = parse(bytes, Some(queue))?;
    document.put(queue.clone(), record.clone());
    let mut written = Vec::new();
    document.write_to(&mut written).map(|()| written)
}
