//! Chaos on real processes that run stored tasks: whatever is killed, stopped, lost, damaged, filled up or set wrong,
//! and whenever, the promises hold and work goes on by itself. Workers of the library and of the program share a scene.
//!
//! The scenes of the pace are in `tests/chaos` of the root; the variables are the same. Short by default;
//! `INTERVAL_QUEUE_CHAOS=long` does hundreds of injections. `INTERVAL_QUEUE_CHAOS_SEED` repeats the random choices of
//! a run, which prints it; `INTERVAL_QUEUE_EVIDENCE` names a directory for what was measured.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../tests/common/process/mod.rs"]
mod process;

mod batches;
mod chaos_facts;
mod clock_chaos;
mod command;
mod disk;
mod harm;
mod judge;
mod judge_checks;
mod kill;
mod log;
mod looks;
mod mixed;
mod outcome;
mod producer;
mod role;
mod scenes;
mod server;
mod sqlite;
mod stop_chaos;
mod worker;
