//! The rules of the interval queue, checked in every state that a few shards can reach.
//!
//! [`Setup`] says how many shards with which jobs share a queue and what may go wrong. [`Queue`] is the model
//! of it: from each state ([`World`]) everything that can happen next happens, and stateright explores all of
//! it, breadth first, until there is nothing new. The record in a state is the real one, and only the real
//! [`rules::apply`](interval_queue_contract::rules::apply) changes it. The shards are real, too: each is the
//! [`Line`](interval_queue_line::Line) that the façade drives, here by the actions of the model.
//!
//! `tests/rules.rs` has the setups in which every promise holds. `tests/flaws.rs` has wrong variants of the
//! rules and of the shards ([`Flaw`]), each of which must be refuted: a checker that finds nothing wrong with
//! them is worth nothing.
//!
//! # What is simplified, and why that hides nothing
//!
//! - **Time goes in ticks**, one or two an interval. All instants of a setup lie on ticks; what a reply tells
//!   in parts of one is rounded up, since a shard may always be late.
//! - **Instants are told from now**, which always is the same number: the rules only compare and add them.
//!   What lies so far back that no rule can tell the difference is moved to one same past (`normal.rs`).
//! - **Sequence and request numbers** are replaced by their ranks: the rules only compare them.
//! - **A shard may always be late**: nothing in the model is urgent. So a stopped process, a slow network and
//!   a slow disk need no actions of their own.
//! - **A restarted process** is a new shard: one that adds its first job later.
//! - **Shards that differ only by name** add their first jobs in the order of their names.
//! - **Jobs end at once** where no running limit makes their end matter.
//! - **The clocks agree**: a shard reads that of the state without error. How it bounds the difference is left
//!   to the tests of the line.
//! - **A retry may come at once**, and a shard that had to give grants up is as strict about the next ones:
//!   delays between tries, and the patience of an overloaded host, only make shards later.
//! - **A quick request** arrives when it is sent, a slow one whenever it likes; only a slow one can outlive
//!   its shard's patience.
//! - **What shards remember** is reduced to sequence and instant where the record can be lost no more and
//!   knows all of it, which is checked: then it lifts nothing.
//! - **Fresh tickets for late ones** (`Late::Requeue`), clocks that step back and changes of settings are
//!   left to the property tests of the contract.
//! - **States are told apart by 64-bit hashes**, as stateright does it: among a million states two are taken
//!   for one with a chance of one in thirty million.
//!
//! # Why stateright
//!
//! It checks real Rust code on the stable compiler, finds shortest counterexamples, and its dependencies are
//! current. Loom and shuttle explore threads, not messages and time; TLA+ would check a copy of the rules.
//! Two of its habits are worked around: `eventually` is documented to miss cycles, so liveness is an `always`
//! here, for which a continuation without further trouble is run to its end from every state (`calm.rs`); and
//! a later counterexample replaces the shortest one, so only the first is told (`model.rs`).
//!
//! It is a member of the workspace of its own, not a test of the contract, because stateright brings a web
//! server for its explorer along, and because the model needs an optimised build.

mod calm;
mod flaw;
mod hash;
mod model;
mod normal;
mod promise;
mod report;
mod setup;
mod shard;
mod sight;
mod story;
pub mod tasks;
mod world;

pub use flaw::Flaw;
pub use model::{Action, Queue};
pub use promise::Promise;
pub use report::Verdict;
pub use setup::{Asking, Loss, Requests, Setup, Trouble};
pub use sight::Sight;
pub use world::World;

/// Explores everything that can happen in the setup, until there is nothing new or a promise is broken.
///
/// # Panics
///
/// The checker stopped half-way.
pub fn check(setup: &Setup) -> Verdict {
    report::explore(Queue::new(setup.clone()))
}
