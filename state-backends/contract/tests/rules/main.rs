//! Every rule by itself, on a record whose clock stands still (`common`). What holds whatever happens is told
//! with the line, in `tests/histories.rs` there; what holds whatever is stored and said, by the fuzz target
//! `rules`.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod again;
mod change;
mod clock;
mod common;
mod delete;
mod late;
mod line;
mod loss;
mod meters;
mod presence;
mod room;
mod slot;
mod take;
mod wait;
