//! The crate against real servers; one binary, so that it is linked once.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "what passes on the host is what is tested")]

mod addresses;
mod common;
mod conformance;
mod failures;
mod locking;
mod places;
mod stored;
mod tables_tests;
mod tasks;
mod watch_tests;
