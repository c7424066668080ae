//! Stored tasks in a database: each file is a promise.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod differential;
mod dump;
mod gate_tests;
mod group;
mod play;
mod support;
mod task_bad_input;
mod task_conformance;
mod task_processes;
mod watch_tests;
mod within_tests;
