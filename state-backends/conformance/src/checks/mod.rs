//! The requirements of every store, one function each.
//!
//! Checks run in real time and judge replies, so that a busy machine fails none.
//!
//! # Panics
//!
//! A check panics if the store violates its requirement.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a check fails by panicking"
)]

mod cancel;
mod changes;
mod clock_checks;
mod delete;
mod names;
mod opening;
mod presence;
mod refusal;
mod rules;
mod sizes;
mod slots;
mod threads;
mod tickets;
mod watch;

pub use cancel::*;
pub use changes::*;
pub use clock_checks::*;
pub use delete::*;
pub use names::*;
pub use opening::*;
pub use presence::*;
pub use refusal::*;
pub use rules::*;
pub use sizes::*;
pub use slots::*;
pub use threads::*;
pub use tickets::*;
pub use watch::*;
