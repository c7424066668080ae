//! A task queue and a distributed rate limiter, for Rust and for any other language. This crate is
//! the rate limiter: many processes start work at one exact shared rate, on the SQLite, PostgreSQL
//! or Redis that you already have, or on a JSON file. The crate `interval-queue-tasks` is the task
//! queue: it runs stored tasks with retries, cron schedules and workflows.
//!
//! A **job** is a future in the memory of the process that added it. All processes that open a
//! queue, on one or several machines, start their jobs one interval apart. They share only a small
//! record in the store: there is no broker, no leader and no background loop.
//!
//! ```
//! use std::time::Duration;
//! use interval_queue::IntervalQueue;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let queue = IntervalQueue::builder("mail")
//!     .interval(Duration::from_millis(100))
//!     .connect("memory:") // file:pace.json, redis://… or postgres://… to share it between processes
//!     .await?;
//!
//! let first = queue.add(async { "first" }).await?;
//! let second = queue.add(async { "second" }).await?;
//! assert!(first.ticket().await? < second.ticket().await?);
//! assert_eq!(second.await?, "second"); // started 100 ms after the first
//! # Ok(())
//! # }
//! ```
//!
//! # Rates
//!
//! Instead of an interval, a queue can have several [rates](RateLimit) as services publish them:
//! `.rate(5).per(SECOND).burst(20).and(10_000).per(DAY)`. All of them hold. See
//! [`_guide::rate_limits`].
//!
//! # Terms
//!
//! - **Queue**: a name within a store.
//! - **Shard**: one open [`IntervalQueue`].
//! - **Ticket**: the position of a job in the order of starts.
//! - **Slot**: an instant on the store's clock at which one job may start.
//! - **Current**: the highest ticket that has started.
//! - **Presence**: the record's entry of a shard with jobs. It ends with the shard's **lease**
//!   unless the shard polls again.
//!
//! # Guarantees
//!
//! - Slots are at least one interval apart, and no job starts before its slot. With bursts, a span
//!   of time has at most the burst plus one slot per interval, for each rate.
//! - Live, punctual shards start jobs in ticket order. Adjacent tickets may swap only while a
//!   running limit delays jobs.
//! - A shard that misses a slot loses the slot, never the job.
//! - A killed process wastes at most the slots until its lease ends.
//! - A job starts at most once per grant.
//! - While the store is unreachable nothing starts, unless [`WhenStateIsLost`] is set otherwise.
//!   Jobs wait, and starts resume without a call.
//! - An idle shard has no timer, task or I/O; a shard with a long wait watches for changes.
//! - The run time of jobs does not affect the rate, unless [`max_running`](Builder::max_running)
//!   limits how many run at once.
//!
//! # Pausing
//!
//! [`pause`](IntervalQueue::pause) stops all shards, [`resume`](IntervalQueue::resume) starts them
//! again; [`WakeUps`] describes how shards notice. With wake-ups off, a paused shard has no task
//! and no timer until its next [`add`](IntervalQueue::add), [`start`](IntervalQueue::start) or
//! [`tick`](IntervalQueue::tick), which a signal handler, an HTTP endpoint or a cron job may call
//! at any time.
//!
//! # Many queues
//!
//! [`IntervalQueues`] opens thousands of queues by key, such as a customer, host or API key, over
//! one connection, and drops idle ones.
//!
//! # Stores
//!
//! [`connect`] lists the URLs and opens a [`Store`], which several queues can share. Features add
//! stores to [`MemoryState`]:
//!
//! | feature | store |
//! |---|---|
//! | `json-file` (default) | a JSON file; with `json-file-watch` it notifies, see [`WakeUps`] |
//! | `directory` | a directory: a file per stored task, the rate in a JSON file; bundles SQLite |
//! | `sqlite` | an SQLite database; bundles SQLite, which needs a C compiler |
//! | `redis` | Redis or Valkey; `redis-tls`, `redis-sentinel`, `redis-cluster` add these |
//! | `postgres` | PostgreSQL; `postgres-tls` adds TLS, `sqlx` adds tasks in transactions of sqlx |
//!
//! [`_guide::stores`] compares them. To add a store, implement [`SharedState`] from
//! [`contract`]. To share a connection pool with the application, or to open a store in code, pass
//! a value of the store's crate, such as `interval-queue-postgres`, to [`Builder::open`].
//!
//! # Clients of an API
//!
//! With the feature `tower`, a layer applies the rate to any `tower` service: a client (reqwest,
//! tonic, hyper) or a server. With `http`, another layer makes all processes wait as long as a
//! response requests in `Retry-After` or `RateLimit`.
//!
//! # Observability
//!
//! A job runs in a [`tracing`](https://docs.rs/tracing) span, a child of the span in which it was
//! added. Changes of the queue are events; the feature `metrics` counts them. [`telemetry`] lists
//! all names.
//!
//! # Testing
//!
//! On a [`MemoryState`] the queue follows tokio's paused time: an hour at a rate takes
//! milliseconds. All examples of this documentation run this way.
// docs.rs shows the feature that each item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod _guide;
mod add;
mod builder;
mod clock;
mod connection;
mod control;
mod driver;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod host;
#[cfg(feature = "http")]
pub mod http;
mod job;
mod job_builder;
mod late_binding;
mod limits;
mod line;
mod maintenance;
mod operator;
mod options;
mod pace;
mod queue;
mod queues;
mod retry;
mod shard;
mod shutdown;
mod status;
mod store;
pub mod telemetry;
mod timer;
#[cfg(feature = "tower")]
pub mod tower;
mod turn;
mod until;
mod user_code;
mod wake;
mod wake_ups;

pub use builder::Builder;
pub use connection::{Connection, Failing};
pub use control::Tick;
pub use error::{Error, ErrorKind};
pub use host::Host;
pub use interval_queue_contract as contract;
pub use interval_queue_contract::outage::Outages;
pub use interval_queue_contract::{
    Deletion, InvalidInput, Label, Late, MAX_INTERVAL, MAX_LEAD, MAX_WEIGHT, MIN_INTERVAL, MaxRunning,
    Micros, OnExisting, Presence, QueueName, Rate, Rates, Record, Settings, ShardId, SharedState, Snapshot,
    StartStatus, StateError, StateErrorKind, Ticket, WaitReason,
};
pub use interval_queue_line::{SpaceBy, WhenStateIsLost};
pub use interval_queue_memory::MemoryState;
#[doc(hidden)]
pub use interval_queue_task_contract as task_contract;
pub use job::JobHandle;
pub use job_builder::{InPlace, JobBuilder, Many, Retrying};
pub use late_binding::{Choice, Pull, Weighed};
pub use limits::{Limits, Turns};
pub use operator::{Operator, Operators, refuses};
pub use options::JobOptions;
pub use pace::{Counted, DAY, HOUR, MINUTE, RateLimit, SECOND};

pub use queue::IntervalQueue;
pub use queues::{IntervalQueues, QueuesBuilder};
pub use retry::Retry;
pub use shard::JobGroup;
pub use shutdown::Shutdown;
pub use status::{Reason, Status};
pub use store::{StateSource, Store, connect};
pub use turn::Turn;
pub use wake_ups::WakeUps;
