//! Stored tasks in a database: each file is a promise.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod conformance;
mod differential;
mod dump;
mod group;
mod play;
mod processes;
mod support;
mod watch;
mod within;
