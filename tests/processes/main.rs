//! The promises on real processes, which share their state on a file or on a real server, a file each.
#![cfg(all(unix, any(feature = "json-file", feature = "sqlite", feature = "redis", feature = "postgres")))]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../common/process/mod.rs"]
mod process;

#[cfg(all(feature = "redis", feature = "postgres"))]
mod alone_processes;
mod control_processes;
mod kill;
mod limits_processes;
mod pace_processes;
mod rates_processes;
mod stop;
#[cfg(any(feature = "json-file-watch", feature = "redis", feature = "postgres"))]
mod wake_processes;
