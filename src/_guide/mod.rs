//! A guide to the queue, by what one wants to do.
//!
//! | page | what for |
//! |---|---|
//! | [`jobs`] | adding jobs: results, weights, priorities, latest starts, time limits, groups, retries, bounded lines |
//! | [`choosing_a_state`] | memory, a file or Redis; what each costs and survives; what to set |
//! | [`coming_from`] | Bottleneck, BullMQ, governor, PyrateLimiter, sharded-interval-queue: what maps to what |
//!
//! There is no code in these modules.

#[doc = include_str!("jobs.md")]
pub mod jobs {}

#[doc = include_str!("choosing_a_state.md")]
pub mod choosing_a_state {}

#[doc = include_str!("coming_from.md")]
pub mod coming_from {}
