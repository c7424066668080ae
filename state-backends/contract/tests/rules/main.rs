//! Every rule by itself, and what holds whatever happens: a record on a clock that stands still (`common`), and
//! simulated shards that share one (`sim`).
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod change;
mod clock;
mod common;
mod late;
mod loss;
mod presence;
mod properties;
mod room;
mod sim;
mod slot;
mod take;
mod total;
mod wait;
