//! Many processes, a shared state, a network, and all that goes wrong with them, in virtual time.
//!
//! The shards are real: [`interval_queue`]'s driver, on its real rules. What is simulated is what they stand
//! on: each [`Process`] has a clock that drifts, can be killed, and can be stopped at any step; its way
//! to the store delays, loses, doubles and reorders messages; the store in the [`World`] forgets, rewinds,
//! restarts, and has a clock that jumps. After every event the promises are checked. The same seed gives the
//! same events in the same order, tens of thousands of times as fast as they would really happen.
//!
//! # To test your own service
//!
//! Open your queues with [`Process::queue`] on the process, run your service with [`Process::run`],
//! let something go wrong, and ask [`World::violation`]; see [`simulate`]. Code that runs in a process takes
//! its time from tokio, whose clock is paused, or from the process.
//!
//! ```toml
//! [dev-dependencies]
//! interval-queue-sim = { version = "0.1", default-features = false }
//! ```
//!
//! # To test the queue itself
//!
//! A [`Plan`] is all that happens in one simulation, made from a seed and a [`Shape`]; [`run()`] carries it
//! out, and [`shrink()`] finds a short one that breaks the same promise. The program `interval-queue-sim`
//! does that for as many seeds as there is time for:
//!
//! ```console
//! $ interval-queue-sim run --seeds 0..1000000
//! $ interval-queue-sim run --faults crash,stop,lose-reply --shards 10 --jobs 500
//! $ interval-queue-sim run --rate 10ms:20,60ms:100   # bursts of 20, and a quota
//! $ interval-queue-sim run --sabotage no-lease     # a rule that is wrong on purpose is found
//! $ interval-queue-sim replay 42                   # all that happens under one seed
//! ```
//!
//! # To test stored tasks
//!
//! [`tasks`] has the same for stored tasks: the real workers of [`interval_queue_tasks`] in the same processes, on the
//! same store and network. `interval-queue-sim run --tasks 10` runs it.
//!
//! # How real it is
//!
//! Time has the grain of tokio's timers, a millisecond. A store is one record behind a lock, so no backend is
//! tested: the conformance suite, the differential test and the chaos tests do that. What the checks allow
//! after a loss of state or a step of the store's clock is what the queue's documents say is not promised,
//! and no more: each [`Promise`] says what is held against it.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod check;
mod execution;
mod fault;
mod final_checks;
mod journal;
mod plan;
mod process;
mod run;
mod sabotage;
mod service;
mod shrink;
mod simulate;
mod store;
pub mod tasks;
mod wire;
mod world;

pub use check::{Promise, Violation};
pub use fault::Fault;
pub use journal::Entry;
pub use plan::{Event, Plan, Shape, ShardPlan, Timed};
pub use process::Process;
pub use run::{Outcome, replay, run};
pub use sabotage::{SABOTAGES, Sabotage};
pub use shrink::shrink;
pub use simulate::simulate;
pub use store::Rules;
pub use wire::{Cut, Mishap};
pub use world::{Settings, World};
