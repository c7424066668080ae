//! The meter; does nothing without the feature `metrics`.

#[cfg(not(feature = "metrics"))]
mod absent;
#[cfg(feature = "metrics")]
mod handles;
#[cfg(feature = "metrics")]
mod label;

#[cfg(not(feature = "metrics"))]
pub(crate) use absent::{Levels, Meter, MetricsLabel};
#[cfg(feature = "metrics")]
pub(crate) use handles::{Levels, Meter};
#[cfg(feature = "metrics")]
pub use label::MetricsLabel;
