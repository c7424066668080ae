//! The suite that every rate store passes, and testing tools.
//!
//! The author of a backend depends on this crate in tests and writes one line, [`suite!`]:
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
//! [`suite!`] makes a test for each requirement of the
//! [contract](interval_queue_contract::SharedState). Most important,
//! [`checks::commands_follow_the_rules`] compares random commands with the rules. The environment
//! variable `INTERVAL_QUEUE_SEED` selects them.
//!
//! - [`run`] runs the checks in a program; [`CHECKS`] lists them and [`checks`] documents them.
//! - [`Load`] generates commands, to compare rules on any clock and after any fault.
//! - [`Faulty`] makes a store fail on demand.
//! - [`Keeping`] keeps the store's server or directory alive.
//! - [`ManualClock`] is a clock that a test moves by hand.

pub mod checks;
mod client;
mod clock;
mod faulty;
mod keeping;
mod load;
mod member;
mod model;
mod random;
mod runner;
mod suite;
mod tally;

pub use client::Handles;
pub use clock::ManualClock;
pub use faulty::{Counts, Faults, Faulty};
pub use keeping::Keeping;
pub use load::{Load, SentCommand};
pub use runner::{Check, Failure, Failures, run};
pub use suite::CHECKS;
pub use tally::Tally;

/// For the macros in the caller's crate and the other suites. Not public API.
#[doc(hidden)]
pub mod __private {
    pub use crate::runner::{test, test_within, watched};
}
