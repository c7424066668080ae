//! The suite that every task store passes, and a fuzzer of the rules under faults.
//!
//! The author of a store depends on this crate in tests and writes one line,
//! [`task_conformance_tests!`]:
//!
//! ```
//! use std::sync::Arc;
//! use interval_queue_conformance::ManualClock;
//! use interval_queue_memory::MemoryTasks;
//! use interval_queue_task_conformance::Handles;
//!
//! /// Two handles on one store, as two processes would have them.
//! async fn make() -> Handles {
//!     let clock = ManualClock::new();
//!     let reading = clock.clone();
//!     let store = MemoryTasks::with_clock(move || reading.now());
//!     Handles { one: Arc::new(store.clone()), other: Arc::new(store), clock: Some(clock) }
//! }
//!
//! interval_queue_task_conformance::task_conformance_tests!(make);
//! ```
//!
//! The macro makes a test for each requirement of the
//! [contract](interval_queue_task_contract::TaskStore). Most important,
//! [`checks::commands_follow_the_rules`] compares random commands with the rules. The environment
//! variable `INTERVAL_QUEUE_SEED` selects them.
//!
//! - [`run`] runs the checks in a program; [`CHECKS`] lists them and [`checks`] documents them.
//! - [`differential`] sends random commands of all kinds to a store and to the memory.
//! - [`interleaved`] runs concurrent transactions in every order of their statements.
//! - [`fuzzer`] fuzzes the rules: producers, workers, faults, an operator; all promises checked after
//!   every command.

pub mod checks;
#[doc(hidden)]
pub mod client;
pub mod differential;
pub mod fuzzer;
#[doc(hidden)]
pub mod hand;
pub mod interleaved;
mod promises;
#[doc(hidden)]
pub mod recounted;
mod runner;
mod suite;

pub use client::Handles;
pub use interval_queue_conformance::{Failure, Failures};
pub use runner::{Check, run};
pub use suite::CHECKS;

/// For the macros in the caller's crate. Not public API.
#[doc(hidden)]
pub mod __private {
    pub use crate::runner::test;
}
