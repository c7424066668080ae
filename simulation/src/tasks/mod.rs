//! Stored tasks: the real workers of [`interval_queue_tasks`] on the real rules, under the same
//! faults.
//!
//! A [`Plan`] is all that happens in one simulation; [`run()`] runs it. After every command the
//! judge of the task contract checks the promises T1 to T10; `run_monitor.rs` checks what only
//! whole processes show. Not covered: schedules (T8), which no worker fires here, and the cost of
//! commands (T12).

mod actor;
mod handler;
mod ids;
mod opened;
mod operator;
mod plan_generator;
mod run_monitor;
mod task_execution;
mod task_final_checks;
mod task_plan;
mod task_run;
mod task_sabotage;
mod task_store;
mod task_wire;

pub(crate) use run_monitor::RunMonitor;
pub use task_plan::{Batch, Ends, Event, Operation, Plan, Run, Shape, TaskPlan, Timed, WorkerPlan};
pub use task_run::{Outcome, replay, run, run_on, shrink};
pub use task_sabotage::{SABOTAGES, Sabotage};
pub use task_store::Rules;
pub(crate) use task_store::Tasks;
pub(crate) use task_wire::{answer, words};
