//! Stored tasks on a Redis: each file is a promise.

mod cases;
mod cost;
mod differential;
mod fuzz_tests;
mod policy;
mod support;
mod task_conformance;
mod task_failures;
