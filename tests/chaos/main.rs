//! Chaos on real processes and real servers: whatever is killed, stopped, lost, cut off, filled up or set
//! wrong, and whenever, the promises hold and work goes on by itself.
//!
//! Short by default; `INTERVAL_QUEUE_CHAOS=long` does hundreds of injections. `INTERVAL_QUEUE_CHAOS_SEED`
//! repeats the random choices of a run, which prints it; `INTERVAL_QUEUE_EVIDENCE` names a directory for what
//! was measured.
#![cfg(all(
    target_os = "linux",
    any(feature = "json-file", feature = "sqlite", feature = "redis", feature = "postgres")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/process/mod.rs"]
mod process;

#[cfg(feature = "json-file")]
mod clock_chaos;
#[cfg(feature = "json-file")]
mod damage;
#[cfg(feature = "json-file")]
mod disk;
#[cfg(feature = "json-file")]
mod edit;
mod kill_chaos;
mod mixed;
mod network;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "redis-sentinel")]
mod sentinel;
mod server;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stop_chaos;
