//! The promises of stored tasks, a file each, as far as commands can show them. Run on every store.
//!
//! T12, the cost of a command, is counted on the memory (`tests/promises/t12_cost.rs`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "a check fails by panicking, and its name says what is expected"
)]

mod t10_truth;
mod t11_quiet;
mod t1_kept;
mod t2_one_run;
mod t3_to_the_end;
mod t4_order;
mod t5_pace;
mod t6_limits;
mod t7_edges;
mod t8_schedules;
mod t9_control;

pub use t1_kept::*;
pub use t2_one_run::*;
pub use t3_to_the_end::*;
pub use t4_order::*;
pub use t5_pace::*;
pub use t6_limits::*;
pub use t7_edges::*;
pub use t8_schedules::*;
pub use t9_control::*;
pub use t10_truth::*;
pub use t11_quiet::*;
