//! The rules and the workers of stored tasks, checked in every state that a few workers can reach.
//!
//! [`Setup`] says how many workers share a queue of which tasks, what may happen once and what may go wrong. [`Queue`]
//! is the model of it. What is stored in a state are the [`Tables`](interval_queue_memory::Tables) of the memory, and
//! only the real [`rules::apply`](interval_queue_task_contract::rules::apply) changes them. The workers are real, too:
//! each is the [`Worker`](interval_queue_worker::Worker) that the crate of applications drives, here by the actions of
//! the model. After each command `judge.rs` holds what was before, what was said and what is now against the promises
//! ([`Promise`]); from each state a continuation without further trouble is run to its end (`calm.rs`).
//!
//! `tests/task_rules.rs` has the setups in which every promise holds, `tests/task_flaws.rs` the wrong
//! variants ([`Flaw`]), each of which must be refuted.
//!
//! # What is simplified, and why that hides nothing
//!
//! - **Time goes in ticks**, four a lease: no silence of all counts for more than a quarter of a lease, so that the
//!   lease of a dead worker ends after four of them at the soonest. Instants in between are looked at at the next tick.
//! - **A worker may always be late** where a setup says so: nothing is urgent, and it may make a step
//!   whenever it likes, since a nudge may always come. So a stopped process, a slow network and the rests
//!   between steps need no actions of their own. In other setups workers are [late by less than a
//!   tick](Lateness::ATick): there the leases of the living never end, and the number of tasks and of events
//!   can be larger.
//! - **States are told apart by what rules and workers can tell apart** (`hash.rs`): instants by how far off they are,
//!   what has come as come; tokens and numbers of steps by their ranks, since they are only compared; workers whatever
//!   their names, which decide nothing but ties; without what is for people: labels, errors, earlier runs.
//! - **The lease of a worker that holds nothing** decides nothing but whether its next step says so. It says so or not,
//!   whenever it likes.
//! - **Twenty uncounted returns in a row** make a task wait. States are not told apart by how many there were, and each
//!   is explored as of a shortest way to it, which has fewer.
//! - **One kind of task**, which every worker serves, and no deadlines: those are left to the fuzzer of the conformance
//!   suite.
//! - **Nothing is purged**: what has ended is kept for longer than any way through the states takes.
//! - **Runs that are not wanted any more end at once**: the driver drops them.
//! - **A retry may come at once**: delays between tries only make workers later.
//! - **A restarted process** is a new worker: one that makes its first step later.
//! - **The clocks agree**, and the store forgets nothing: clocks that step and a store that was rolled back are left to
//!   the fuzzer of the conformance suite and to the simulation, and so are schedules and the pace.
//! - **In the continuation** no step is lost, what was lost stays lost, and every run is done; workers act when it is
//!   time by their own reckoning, and nobody nudges them.

mod judge;
mod member;
mod ranks;
mod rows;
mod task_flaw;
mod task_hash;
mod task_model;
mod task_promise;
mod task_quiescence;
mod task_setup;
mod task_trace;
mod task_world;

pub use task_flaw::Flaw;
pub use task_model::{Action, End, Queue};
pub use task_promise::{Promise, Sight};
pub use task_setup::{Lateness, Once, Requests, Setup, Starts, Trouble, attempts, id, key, task};
pub use task_world::World;

/// What the checker found in a setup.
pub type Verdict = crate::Verdict<Promise, Action, Sight>;

/// Explores everything that can happen in the setup, until there is nothing new or a promise is broken.
///
/// # Panics
///
/// The checker stopped half-way.
pub fn check(setup: &Setup) -> Verdict {
    crate::report::explore(Queue::new(setup.clone()))
}
