//! Stored tasks in a database: each file is a promise.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod differential;
mod processes;
mod random;
mod speed;
mod support;
