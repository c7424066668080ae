//! Every rule by itself, on a record whose clock stands still (`common`). What holds whatever happens is told
//! with the line, in `tests/histories.rs` there; what holds whatever is stored and said, by the fuzz target
//! `rules`.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod again_tests;
mod change_tests;
mod clock_tests;
mod common;
mod delete_tests;
mod late;
mod line;
mod loss_tests;
mod meters;
mod presence_tests;
mod room;
mod slot_tests;
mod take;
mod wait_tests;
