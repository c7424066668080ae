//! The requirements of every task store, one function each.
//!
//! Checks judge replies, so that a busy machine fails none.
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

mod add;
mod backlog;
mod counts;
mod edges;
mod ending;
mod fence;
mod fields;
mod follow;
mod graphs;
mod json_text;
mod keep;
mod keys;
mod links;
mod load;
mod log_checks;
mod moving;
mod order;
mod pages;
mod prefetch;
mod random;
mod refusal;
mod schedules;
mod settings;
mod threads;
mod times;
mod unique;
mod verbs;
mod watch;

pub use add::*;
pub use backlog::*;
pub use counts::*;
pub use edges::*;
pub use ending::*;
pub use fence::*;
pub use fields::*;
pub use follow::*;
pub use graphs::*;
pub use json_text::*;
pub use keep::*;
pub use keys::*;
pub use links::*;
pub use load::*;
pub use log_checks::*;
pub use moving::*;
pub use order::*;
pub use pages::*;
pub use prefetch::*;
pub use random::*;
pub use refusal::*;
pub use schedules::*;
pub use settings::*;
pub use threads::*;
pub use times::*;
pub use unique::*;
pub use verbs::*;
pub use watch::*;

pub use crate::promises::*;
