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
//! A program runs the same checks with [`run`], or one by one from [`CHECKS`]. [`checks`] says what each one expects.
//!
//! [`Faulty`] wraps any state and makes it fail on demand; [`ManualClock`] is a clock that a test moves by hand.

pub mod checks;
mod client;
mod clock;
mod faulty;
mod keeping;
mod random;
mod runner;
mod suite;

pub use client::Handles;
pub use clock::ManualClock;
pub use faulty::{Counts, Faults, Faulty};
pub use keeping::Keeping;
pub use runner::{Check, Failure, Failures, run};
pub use suite::CHECKS;

/// What the macros reach for in the caller's crate. No part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::runner::test;
}
