//! Stored tasks in a database: each file is a promise.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod differential;
mod random;
mod support;
