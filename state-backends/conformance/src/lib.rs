//! The suite that every state backend of the interval queue passes, and the tools to test with.
//!
//! A backend author depends on this crate for tests and writes one line, [`suite!`]:
//!
//! ```
//! use std::sync::Arc;
//! use interval_queue_conformance::Handles;
//! # use interval_queue_contract::{Command, QueueName, Reply, SharedState, StateError};
//! # #[derive(Clone, Debug)] struct MyState;
//! # #[async_trait::async_trait]
//! # impl SharedState for MyState {
//! #     async fn apply(&self, _: &QueueName, _: Command) -> Result<Reply, StateError> { std::future::pending().await }
//! # }
//!
//! /// Two handles on one state, as two processes would have them.
//! async fn make() -> Handles {
//!     let state = MyState;
//!     (Arc::new(state.clone()), Arc::new(state))
//! }
//!
//! interval_queue_conformance::suite!(make);
//! ```
//!
//! That is a test for each thing that the [contract](interval_queue_contract::SharedState) asks of a backend:
//! atomic under many commands at once, exact with large numbers and odd names, one clock, read in turn,
//! careful, cancel safe. Above all, random commands must do what the rules do:
//! [`checks::commands_follow_the_rules`]. The environment variable `INTERVAL_QUEUE_SEED` chooses among these.
//!
//! A program runs the same checks with [`run`], or one by one from [`CHECKS`]. [`checks`] says what each one
//! expects.
//!
//! A backend with rules of its own can compare them with any clock and after any accident: a [`Crowd`] makes
//! up the commands. [`Faulty`] wraps any state and makes it fail on demand, [`Keeping`] keeps the server or
//! the directory that it lives in; [`ManualClock`] is a clock that a test moves by hand.

pub mod checks;
mod client;
mod clock;
mod crowd;
mod faulty;
mod keeping;
mod member;
mod model;
mod random;
mod runner;
mod suite;
mod tally;

pub use client::Handles;
pub use clock::ManualClock;
pub use crowd::{Crowd, Said};
pub use faulty::{Counts, Faults, Faulty};
pub use keeping::Keeping;
pub use runner::{Check, Failure, Failures, run};
pub use suite::CHECKS;
pub use tally::Tally;

/// What the macros reach for in the caller's crate, and what the suites share. No part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::runner::{test, test_within, watched};
}
