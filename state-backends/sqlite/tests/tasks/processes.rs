//! Real processes that share the tasks of a database.

use std::{
    io::{self, BufRead, Write},
    path::Path,
    sync::mpsc,
};

use interval_queue_task_contract::{Leased, TaskId, TaskStore};
use interval_queue_test_support::{Process, files::block_on};

use super::support::{Hand, add, all, done, mail, open, task};
