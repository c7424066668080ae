//! Promises where a store does more than obey commands: it is rolled back, or joins a transaction of an application.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod t2_one_run_tests;
mod within;
