//! Every rule by itself, on a record whose clock stands still (`common`), and what holds whatever is said. What
//! holds whatever happens is told with the line, in `tests/histories.rs` there.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod change;
mod clock;
mod common;
mod late;
mod loss;
mod presence;
mod room;
mod slot;
mod take;
mod total;
mod wait;
