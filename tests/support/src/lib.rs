//! Real servers and processes for the tests of the interval queue. Servers are on free loopback ports and in temporary
//! directories.
//!
//! Everything here panics with the reason when it cannot do its work: it is for tests only.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test that has no server fails, and says why"
)]

mod certificate;
#[cfg(unix)]
mod process;
mod redis_kinds;
mod redis_server;
mod resp;

#[cfg(unix)]
pub use process::Process;
pub use redis_kinds::SENTINEL_MASTER;
pub use redis_server::RedisServer;
