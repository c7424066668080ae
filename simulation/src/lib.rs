//! Many processes, a shared state, a network, and all that goes wrong with them, in virtual time.
mod check;
mod fault;
mod journal;
mod plan;
mod process;
mod run;
mod sabotage;
mod service;
mod shrink;
mod simulate;
mod store;
mod wire;
mod world;

pub use check::{Promise, Violation};
pub use fault::Fault;
pub use journal::Entry;
pub use plan::{Event, Plan, Shape, ShardPlan, Timed};
pub use process::Process;
pub use run::{Outcome, Run, run};
pub use sabotage::{SABOTAGES, Sabotage};
pub use shrink::shrink;
pub use simulate::simulate;
pub use store::Rules;
pub use wire::{Cut, Mishap, Wire};
pub use world::{Settings, World};
