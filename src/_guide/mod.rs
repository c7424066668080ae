//! The pages of the [book] about jobs and rates.
//!
//! | page | contents |
//! |---|---|
//! | [`jobs`] | add jobs: results, weights, priorities, time limits, groups, bounds, shutdown |
//! | [`rate_limits`] | limits as services publish them: bursts, quotas, margins; many queues |
//! | [`clients`] | rate limits for reqwest, tonic, hyper and axum; obeying `Retry-After` |
//! | [`stores`] | memory, a file, SQLite, Redis or PostgreSQL: cost, durability, settings |
//! | [`coming_from`] | equivalents of Sidekiq, BullMQ, Celery, Bottleneck, governor and others |
//! | [operating] | why nothing starts, metrics, pauses and their end, unused queues |
//! | [deploying] | workers as services, rights and settings of the servers, backups |
//! | [recipes] | commands to paste, and programs: an API client, a crawler, a mail sender |
//!
//! Pages on stored tasks are in the crate
//! [`interval-queue-tasks`](https://docs.rs/interval-queue-tasks/latest/interval_queue_tasks/_guide/index.html).
//!
//! These modules contain only documentation. Links to feature-gated items work if the feature is
//! enabled, as on docs.rs.
//!
//! [book]: https://github.com/interval-queue/interval-queue/blob/main/docs/introduction.md
//! [deploying]: https://github.com/interval-queue/interval-queue/blob/main/docs/deploying.md
//! [operating]: https://github.com/interval-queue/interval-queue/blob/main/docs/operating.md
//! [recipes]: https://github.com/interval-queue/interval-queue/blob/main/docs/recipes.md

#![cfg_attr(not(all(feature = "http", feature = "tower")), allow(rustdoc::broken_intra_doc_links))]
// The pages name the target of each link, as the book needs it.
#![allow(rustdoc::redundant_explicit_links)]

/// The definitions of `links.md` precede those of the page, and so override its relative links,
/// which lead nowhere in rustdoc.
macro_rules! pages {
    ($($name:ident: $page:tt),* $(,)?) => {$(
        #[doc = include_str!("links.md")]
        #[doc = include_str!($page)]
        pub mod $name {}
    )*};
}

pages! {
    jobs: "jobs.md",
    rate_limits: "rate-limits.md",
    clients: "clients.md",
    stores: "stores.md",
    coming_from: "coming-from.md",
}
