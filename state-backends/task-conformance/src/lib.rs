//! The suite that every store of tasks passes, and a play of the rules under faults.
//!
//! The author of a store depends on this crate for tests and writes one line, [`task_conformance_tests!`]:
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
//! That is a test for each thing that the [contract](interval_queue_task_contract::TaskStore) asks of a store. Above
//! all, random commands must do what the rules do: [`checks::commands_follow_the_rules`]. The environment variable
//! `INTERVAL_QUEUE_SEED` chooses among these.
//!
//! A program runs the same checks with [`run`], or one by one from [`CHECKS`]. [`checks`] says what each one expects.
//!
//! [`differential`] sends the same random commands, all kinds of them, to a store and to the memory.
//!
//! [`interleaved`] lets transactions meet, in every order of their statements.
//!
//! [`play`] plays the rules themselves: producers, workers, faults, an operator, and all promises held after every
//! command.

pub mod checks;
#[doc(hidden)]
pub mod client;
pub mod differential;
#[doc(hidden)]
pub mod hand;
pub mod interleaved;
pub mod play;
mod promises;
#[doc(hidden)]
pub mod recounted;
mod runner;
mod suite;

pub use client::Handles;
pub use interval_queue_conformance::{Failure, Failures};
pub use runner::{Check, run};
pub use suite::CHECKS;

/// What the macros reach for in the caller's crate. No part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::runner::test;
}
