//! Caches files read for leases: most tasks are completed soon by the same process.

use std::{cell::RefCell, collections::HashMap, time::SystemTime};

use interval_queue_task_contract::{TaskId, Token};

use super::document::Document;
use crate::store::Files;

const MAX_FILES: usize = 1_000;
/// Longer files are not cached.
const MAX_FILE_BYTES: u64 = 4_096;

#[derive(Debug)]
pub(super) struct LeasedFile {
    pub(super) document: Document,
    pub(super) written: SystemTime,
    pub(super) length: u64,
}

/// Includes the token of the run: another run may have another payload.
#[derive(Debug, Default)]
pub(super) struct LeasedFiles(RefCell<HashMap<TaskId, (Token, LeasedFile)>>);

impl LeasedFiles {
    pub(super) fn keep(&self, id: TaskId, token: Token, read: LeasedFile) {
        let mut files = self.0.borrow_mut();
        if files.len() >= MAX_FILES {
            files.clear();
        }
        if read.length <= MAX_FILE_BYTES {
            files.insert(id, (token, read));
        }
    }

    /// The caller overwrites the file at `path`. `None`: it has changed since it was read.
    pub(super) fn take(&self, id: TaskId, token: Token, files: &Files, path: &str) -> Option<Document> {
        let (of, read) = self.0.borrow_mut().remove(&id)?;
        let is_as_read = of == token && files.is_as_read(path, read.written, read.length);
        is_as_read.then_some(read.document)
    }
}
