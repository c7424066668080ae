//! What the library promises, in virtual time on the memory.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod adding;
mod coming_from;
mod common;
mod control;
mod deletion;
mod failures;
mod flow;
mod flow_control;
mod following;
mod leases;
mod load;
mod outcomes;
mod pace;
mod pace_changes;
mod places;
mod running;
mod schedules;
mod setting_aside;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stopping;
mod telemetry;
mod transfer;
mod within;
