//! Stored tasks in a directory.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod by_hand;
mod conformance;
mod differential;
mod faults_tests;
mod fuzz_tests;
mod links;
mod measure;
mod processes;
mod recount;
mod support;
