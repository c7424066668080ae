//! Stored tasks: work that outlives its process. Producers add tasks to a queue in a store; workers in any number of
//! processes lease them, run them, and say how they ended. There is no server, no scheduler process and no leader:
//! the store is a database or a server that you have already, or a file.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use interval_queue_tasks::{Context, Task, TaskError, TaskQueue, Worker};
//!
//! async fn invoice(context: Context, customer: String) -> Result<u32, TaskError> {
//!     context.progress(0, 1, format!("writing to {customer}"));
//!     Ok(7)
//! }
//!
//! async fn mail(context: Context, customer: String) -> Result<String, TaskError> {
//!     let number: u32 = context.inputs().await?.get("invoice")?;
//!     Ok(format!("Dear {customer}, here is your invoice number {number}."))
//! }
//!
//! // In each process: the same queue, by its name and its store, such as "sqlite:jobs.db".
//! let queue = TaskQueue::builder("billing").interval(Duration::from_millis(100)).connect("memory:").await?;
//!
//! // Where work comes up:
//! let first = Task::new("invoice", &"Ada").unique("invoice of Ada for May");
//! let second = Task::new("mail", &"Ada").input("invoice", first.id());
//! let added = queue.add_all([first, second]).await?;
//!
//! // Where it is done:
//! let worker = Worker::builder(&queue).handler("invoice", invoice).handler("mail", mail).build()?;
//! worker.run_until_empty().await?;
//!
//! // Where its result is needed:
//! let text: String = queue.wait(added[1].id()).await?;
//! assert_eq!(text, "Dear Ada, here is your invoice number 7.");
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! - **Kept.** What [`add`](TaskQueue::add) has acknowledged survives what the store survives. A batch is added whole
//!   or not at all, and what is sent twice is added once. A task that cannot go on is there to be seen, with its
//!   reason.
//! - **One run at a time.** By the store's clock a task is leased to one worker at most. What a worker says too late
//!   changes nothing, and the worker is told so. Handlers get the [token](Context::token), to hand on.
//! - **To the end.** A task whose worker died runs again. After [`max_attempts`](Task::max_attempts) failures it has
//!   failed, and stays to be looked at.
//! - **Order.** The most urgent of those that are ready starts first, equals in the order of adding.
//! - **Pace.** With an [interval](Builder::interval), the starts of all workers on all hosts keep it exactly, and what
//!   starts in a slot is chosen just before it. It may be [given](TaskQueue::set_pace), changed and removed at any time.
//! - **Schedules.** Each instant of a [schedule](Schedule) makes exactly one task, whoever is there to make it.
//! - **Limits** of [all](Builder::max_running) and of one [key](Task::key) are counted from leases; no crash leaks one.
//!
//! A task so runs at least once, or with a single attempt at most once. What it stores in the database of its queue can
//! happen [exactly once](_guide::together).
//!
//! # Testing your service
//!
//! In the memory the queue follows tokio's paused time: every example of this documentation is such a test.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod _guide;
mod adding;
mod builder;
mod control;
mod deletion;
mod error;
mod failures;
mod flow;
mod following;
mod host;
mod looking;
mod pace;
mod queue;
mod rate;
mod schedule;
mod status;
mod tags;
mod task;
pub mod telemetry;
mod totals;
mod transfer;
mod worker;

pub use adding::AddStream;
pub use builder::Builder;
pub use control::Touched;
pub use error::{Error, ErrorKind};
pub use failures::{Failure, Failures};
pub use flow::{AddedFlow, Flow, FlowId, FlowStanding, name_in_flow};
pub use following::Follower;
pub use interval_queue::{Counted, DAY, HOUR, Host, MINUTE, OnExisting, Pace, SECOND, Store, connect};
pub use interval_queue_task_contract as contract;
pub use interval_queue_task_contract::{
    Add, Added, Completed, Completion, Corrected, Event, Followed, Histogram, Input, Json, KEEP_TIMES, Keep,
    Key, Kind, NewEdge, OnConflict, OnFailure, Overlap, Overview, Page, Policy, Recounted, Selector,
    Settings, SettingsChange, State, Stored, TaskId, TaskStore, Times, Token, Verb, Why, WorkerId,
};
pub use queue::TaskQueue;
pub use schedule::{Missed, Rule, Schedule, StoredSchedule};
pub use status::{Condition, QueueStatus};
pub use task::{Task, Upstream};
pub use totals::Totals;
pub use transfer::Transferred;
pub use worker::{
    Context, Inputs, Load, Outage, Places, TaskError, Turns, Worker, WorkerBuilder, WorkerHandle,
};
