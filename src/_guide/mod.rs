//! A guide to the queue, by task.
//!
//! | page | contents |
//! |---|---|
//! | [`jobs`] | add jobs: results, weights, priorities, time limits, groups, retries, bounded lines |
//! | [`rates`] | limits as services publish them: bursts, quotas, margins; changing them |
//! | [`many_queues`] | a queue per customer, host or key; several limits for one job |
//! | [`clients`] | rate limits for reqwest, tonic, hyper and axum; obeying `Retry-After` |
//! | [`choosing_a_state`] | memory, a file, SQLite, Redis or PostgreSQL: cost, durability, settings |
//! | [`operating`] | why nothing starts, metrics, pauses and their end, changing the rate |
//! | [`cookbook`] | programs: an API client, a crawler, a mail sender, model batches, cluster cron |
//! | [`coming_from`] | Bottleneck, BullMQ, governor, PyrateLimiter, sharded-interval-queue |
//!
//! These modules contain only documentation. Links to feature-gated items work if the feature is
//! enabled, as on docs.rs.

#![cfg_attr(not(all(feature = "http", feature = "tower")), allow(rustdoc::broken_intra_doc_links))]

#[doc = include_str!("jobs.md")]
pub mod jobs {}

#[doc = include_str!("rates.md")]
pub mod rates {}

#[doc = include_str!("many_queues.md")]
pub mod many_queues {}

#[doc = include_str!("clients.md")]
pub mod clients {}

#[doc = include_str!("choosing_a_state.md")]
pub mod choosing_a_state {}

#[doc = include_str!("operating.md")]
pub mod operating {}

#[doc = include_str!("cookbook.md")]
pub mod cookbook {}

#[doc = include_str!("coming_from.md")]
pub mod coming_from {}
