//! What the library promises, in virtual time on the memory.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod add_tests;
mod batches;
mod codecs;
mod coming_from;
mod common;
mod control_tests;
mod deletion_tests;
mod failures;
mod flow;
mod flow_control;
mod follower_tests;
mod kind_policies;
#[cfg(feature = "tower")]
mod layers;
mod leases;
mod load_tests;
mod outcomes;
mod pace_changes;
mod pace_tests;
mod permits_tests;
mod running;
mod scheduled_flows;
mod schedules_tests;
mod setting_aside;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "sqlx")]
mod sqlx_pages;
mod stopping;
mod task_kinds;
mod telemetry;
mod testing_tests;
#[cfg(feature = "opentelemetry")]
mod traces;
mod transfer;
mod within;
