//! Files that were read when their tasks were leased: most are completed by the same process soon, which need not read
//! them again.

use std::{cell::RefCell, collections::HashMap, time::SystemTime};

use interval_queue_task_contract::{TaskId, Token};

use super::document::Document;
use crate::store::Files;

/// So many are kept.
const MAX_FILES: usize = 1_000;
/// None that is longer.
const MAX_FILE_BYTES: u64 = 4_096;

/// A file as it was read.
#[derive(Debug)]
pub(super) struct LeasedFile {
    pub(super) document: Document,
    pub(super) written: SystemTime,
    pub(super) length: u64,
}

/// The files of tasks that run, each with the token of its run: another run may have been given another payload.
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

    /// What the file at a place says, if it is as it was read. It is to be written now.
    pub(super) fn take(&self, id: TaskId, token: Token, files: &Files, path: &str) -> Option<Document> {
        let (of, read) = self.0.borrow_mut().remove(&id)?;
        let is_as_read = of == token && files.is_as_read(path, read.written, read.length);
        is_as_read.then_some(read.document)
    }
}
