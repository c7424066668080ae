//! What every state in a file promises.
#![cfg(unix)]

mod support;

interval_queue_test_support::file_promises!(support::Sqlite);
