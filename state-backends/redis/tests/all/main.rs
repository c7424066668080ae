//! Tests with real servers, one module for each promise.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;
mod conformance;
#[cfg(feature = "fuzzing")]
mod differential;
mod failures;
mod permits;
mod places;
mod stored;
mod tasks;
mod watch_tests;
