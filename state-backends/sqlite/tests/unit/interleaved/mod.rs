//! Transactions of the store and of applications that meet, in every order of their statements.
//!
//! SQLite tells of each statement before it runs (`sqlite3_trace_v2`), on the thread that runs it. That is where a
//! command is held; the code that is held is the shipped one.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod application;
mod client;
mod clients;
mod flawed;
mod hold;
mod interleaved_within;
mod killed;
mod orders;

pub(crate) use self::hold::watched;
