//! Real servers and processes for the tests of the interval queue, and what can go wrong between and below
//! them: a network, a disk, a clock. Servers are on free loopback ports and in temporary directories.
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
mod children;
pub mod commands;
#[cfg(target_os = "linux")]
mod disk;
#[cfg(target_os = "linux")]
mod fake_clock;
#[cfg(unix)]
pub mod files;
#[cfg(unix)]
mod pgbouncer;
#[cfg(unix)]
mod postgres_kinds;
#[cfg(unix)]
mod postgres_programs;
#[cfg(unix)]
mod postgres_server;
#[cfg(unix)]
mod process;
mod proxy;
#[cfg(unix)]
mod psql;
mod redis_kinds;
mod redis_server;
mod resp;
mod shard;
#[cfg(unix)]
mod signals;
mod stranger;
mod waiting;

#[cfg(target_os = "linux")]
pub use disk::{Immutable, SmallDisk};
#[cfg(target_os = "linux")]
pub use fake_clock::FakeClock;
#[cfg(unix)]
pub use pgbouncer::PgBouncer;
#[cfg(unix)]
pub use postgres_server::PostgresServer;
#[cfg(unix)]
pub use process::Process;
pub use proxy::Proxy;
pub use redis_kinds::SENTINEL_MASTER;
pub use redis_server::RedisServer;
pub use shard::Shard;
#[cfg(unix)]
pub use signals::command;
pub use stranger::stranger;
pub use waiting::wait_until;
