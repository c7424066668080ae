//! What the micro-benchmarks share.
#![allow(dead_code, reason = "each benchmark uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that fails says so")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

pub(crate) mod commands;
pub(crate) mod load;
pub(crate) mod places;
pub(crate) mod rivals;

use std::time::Duration;

use criterion::Criterion;
use tokio::runtime::{Builder, Runtime};

/// Short enough that all of them take a few minutes.
pub(crate) fn criterion() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .without_plots()
        .configure_from_args()
}

/// One thread, as a service with little to do has.
pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Whether nothing is to be measured: `cargo test --benches` says nothing, `cargo bench` says `--bench`.
pub(crate) fn is_dry() -> bool {
    let says = |what: &str| std::env::args().any(|argument| argument == what);
    !says("--bench") || says("--list") || says("--test")
}
