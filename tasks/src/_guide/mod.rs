//! The pages of the [book] about stored tasks.
//!
//! | page | contents |
//! |---|---|
//! | [`tasks`] | add and run tasks: options, retries, keys, states, settings, guarantees |
//! | [`workflows`] | tasks that wait for other tasks and get their results |
//! | [`schedules`] | cron lines, intervals, missed and overlapping instants |
//! | [`transactions`] | tasks and runs in a transaction of the application |
//! | [coming from][coming-from] | equivalents of Sidekiq, Oban, River, BullMQ, Celery and others |
//! | [operating] | why nothing runs, failures, hanging workers, outages |
//! | [deploying] | workers as services, rights and settings of the servers, backups |
//! | [recipes] | commands to paste, and whole programs |
//!
//! Pages on jobs, rates and stores are in the crate
//! [`interval-queue`](https://docs.rs/interval-queue/latest/interval_queue/_guide/index.html).
//!
//! These modules contain only documentation.
//!
//! [book]: https://github.com/interval-queue/interval-queue/blob/main/docs/introduction.md
//! [coming-from]: https://docs.rs/interval-queue/latest/interval_queue/_guide/coming_from/index.html
//! [deploying]: https://github.com/interval-queue/interval-queue/blob/main/docs/deploying.md
//! [operating]: https://github.com/interval-queue/interval-queue/blob/main/docs/operating.md
//! [recipes]: https://github.com/interval-queue/interval-queue/blob/main/docs/recipes.md

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

// Symbolic links to the pages in `docs`.
pages! {
    tasks: "tasks.md",
    workflows: "workflows.md",
    schedules: "schedules.md",
    transactions: "transactions.md",
}
