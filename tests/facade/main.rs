//! The promises of the queue and what else it can do, a file each: in one process, most of them in virtual time.
//!
//! `common` has what notes slots and starts, `places` queues for tests of several limits, `wire` a state whose
//! faults are chosen for each command.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and measures virtual time"
)]

#[path = "../common/mod.rs"]
mod common;
mod places;
mod wire;

mod add_tests;
mod alone;
mod cancellation;
mod connect;
mod crowd;
mod g10_outage;
mod g1_spacing;
mod g2_order;
mod g3_no_lost_place;
mod g4_failure;
mod g5_at_most_once;
mod g6_rate;
mod g7_quiet;
mod g8_control;
mod g8_through_failures;
mod g9_loss;
#[cfg(feature = "http")]
mod http_feedback;
mod jobs;
mod late_binding_tests;
mod limits;
mod limits_failure;
mod limits_pace;
#[cfg(feature = "metrics")]
mod limits_seen;
mod linger;
mod maintenance_tests;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "metrics")]
mod monitoring;
mod options;
mod original;
mod packages;
mod queues;
mod queues_all;
mod races;
mod rates_tests;
mod rooms;
mod runtimes;
mod status_tests;
#[cfg(feature = "tower")]
mod tower;
mod wait_estimates;
mod wake_ups_tests;
