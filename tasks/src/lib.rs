//! A task queue and a distributed rate limiter, for Rust and for any other language. This crate is
//! the task queue: it runs stored tasks with retries, cron schedules and workflows, on the SQLite,
//! PostgreSQL or Redis that you already have, or in a directory. With the rate limiter, the crate
//! `interval-queue`, many processes start tasks at one exact shared rate.
//!
//! A **task** is a JSON payload, and a kind that selects the handler. It outlives the process that
//! added it: producers add tasks to a queue in a store, and workers in any number of processes run
//! them. There is no broker, no scheduler process and no leader.
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
//! // In each process: open the queue by its name and its store, such as "sqlite:jobs.db".
//! let queue = TaskQueue::builder("billing").interval(Duration::from_millis(100)).connect("memory:").await?;
//!
//! // The producer adds tasks:
//! let first = Task::new("invoice", &"Ada").unique("invoice of Ada for May");
//! let second = Task::new("mail", &"Ada").input("invoice", first.id());
//! let added = queue.add_all([first, second]).await?;
//!
//! // The worker runs them:
//! let worker = Worker::builder(&queue).handler("invoice", invoice).handler("mail", mail).build()?;
//! worker.run_until_empty().await?;
//!
//! // Any process reads the result:
//! let text: String = queue.wait(added[1].id()).await?;
//! assert_eq!(text, "Dear Ada, here is your invoice number 7.");
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! - **Kept.** An acknowledged [`add`](TaskQueue::add) is as durable as the store. A batch is added
//!   completely or not at all; repeating it adds nothing. A task that cannot continue stays visible
//!   with its reason.
//! - **One run at a time.** By the store's clock, a task is leased to at most one worker. Late
//!   completions are rejected. Handlers get the [fencing token](Context::token) to pass on.
//! - **To the end.** If a worker dies, its task runs again. After
//!   [`max_attempts`](Task::max_attempts) failures the task has failed and stays for inspection.
//! - **Order.** The most urgent ready task starts first, ties in the order of adding.
//! - **Rate.** Starts on all hosts keep the [interval](Builder::interval) exactly. The task for a
//!   slot is chosen just before it. [Set](TaskQueue::set_rate_limit) or remove the rate at any time.
//! - **Schedules.** Each due time of a [schedule](Schedule) makes exactly one task or flow, whichever
//!   worker polls first.
//! - **Limits** on [all tasks](Builder::max_running) and on one [key](Task::key) count leases, so
//!   no crash leaks a permit.
//!
//! A task runs at least once, or with a single attempt at most once. Writes to the queue's own
//! database can happen [exactly once](_guide::transactions).
//!
//! # Testing your service
//!
//! With `memory:` the queue follows tokio's paused time, as in every example here. The module
//! [`testing`] asserts which tasks were added, and runs them in the test.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod _guide;
mod add;
mod builder;
mod codec;
mod control;
mod deletion;
mod error;
mod failures;
mod flow;
mod follower;
mod host;
mod log_tail;
mod pace;
mod queries;
mod queue;
mod queues;
mod rate;
mod schedule;
mod status;
mod tags;
mod task;
mod task_kind;
pub mod telemetry;
pub mod testing;
mod totals;
mod transfer;
mod worker;

pub use add::AddStream;
pub use builder::Builder;
pub use codec::Codec;
pub use control::Touched;
pub use error::{Error, ErrorKind};
pub use failures::{Failure, Failures};
pub use flow::{AddedFlow, Flow, FlowId, FlowProgress, name_in_flow};
pub use follower::Follower;
pub use interval_queue::{Counted, DAY, HOUR, Host, MINUTE, OnExisting, RateLimit, SECOND, Store, connect};
pub use interval_queue_task_contract as contract;
pub use interval_queue_task_contract::{
    ABOVE_ALL, Add, Added, Completed, Completion, Corrected, Counted as Counter, Cursor, Day, Edge, Event,
    Followed, Histogram, Input, Json, KEEP_DAYS, KEEP_TIMES, Keep, Key, Kind, LogLine, MAX_ATTEMPTS,
    MAX_DELAY, MAX_HELD, MAX_KIND_POLICIES, MAX_LOG_LINES, MAX_LOG_TEXT, MAX_PAGE, MAX_PRIORITY, MAX_REPLY,
    MAX_SCANNED, MAX_TAGS, MIN_LEASE, MIN_SUFFIX, NewEdge, OnConflict, OnFailure, Order, Overlap, Overview,
    Page, Policy, PolicyOverride, Recounted, Selector, Settings, SettingsChange, State, Stored, Tag,
    Task as StoredTask, TaskId, TaskStore, Throughput, Times, Token, Traceparent, Verb, Why,
    Worker as StoredWorker, WorkerId,
};
pub use log_tail::LogTail;
pub use queue::TaskQueue;
pub use queues::TaskQueues;
pub use schedule::{Missed, Rule, Schedule, StoredSchedule, Template};
pub use status::{Condition, QueueStatus};
pub use task::{Task, Upstream};
pub use task_kind::TaskKind;
pub use totals::Totals;
pub use transfer::{MAX_MOVED_TO, Transferred};
pub use worker::{
    Context, Inputs, Lease, Load, Outage, Permits, QueueOrder, TaskError, Worker, WorkerBuilder,
    WorkerConnection, WorkerFailure, WorkerHandle,
};

/// Types for layers of tower around handlers: see [`WorkerBuilder::layer`].
#[cfg(feature = "tower")]
pub mod tower {
    pub use crate::worker::{HandlerError, HandlerService, Output};
}
