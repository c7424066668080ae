//! A guide to the queue, by what one wants to do.
//!
//! | page | what for |
//! |---|---|
//! | [`jobs`] | adding jobs: results, weights, priorities, latest starts, time limits, groups, retries, bounded lines |
//! | [`rates`] | limits as services publish them: bursts, quotas, margins; changing them |
//! | [`many_queues`] | a queue for each customer, host or key; several limits for one job |
//! | [`clients`] | pacing reqwest, tonic, hyper and axum; obeying `Retry-After` |
//! | [`choosing_a_state`] | memory, a file, SQLite, Redis or PostgreSQL; what each costs and survives; what to set |
//! | [`operating`] | why nothing starts, what to measure, pauses and their end, changing the pace |
//! | [`cookbook`] | whole programs: an API client, a crawler, a mail sender, a batch for a model, cron on a cluster |
//! | [`coming_from`] | Bottleneck, BullMQ, governor, PyrateLimiter, sharded-interval-queue: what maps to what |
//!
//! There is no code in these modules. Links to what a feature brings lead somewhere where that feature is on,
//! as on docs.rs.

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
