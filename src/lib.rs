//! Many processes, one pace: a leaderless, rate-limited queue of async jobs.
//!
//! Services in several processes or on several machines start their jobs at one shared interval. All they
//! share is a small record, in a file or in the Redis or PostgreSQL they have; there is no broker, no leader
//! and no background loop.
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
//! Instead of an interval a queue can have [rates](Pace) as services publish them, all of which hold:
//! `.rate(5).per(SECOND).burst(20).and(10_000).per(DAY)`. [`_guide::rates`] says what to ask for.
//!
//! # Words
//!
//! A **queue** is a name within a shared state; every [`IntervalQueue`] that opens it is a **shard** of it.
//! To add a job a shard takes a **ticket**, the job's place. A **slot** is an instant on the state's clock at
//! which one job may start. **Current** is the highest ticket that has started. A shard with jobs has a
//! **presence** in the record, which ends with its **lease** unless it asks again.
//!
//! # What can be relied on
//!
//! Slots are never closer than the interval, and a job never starts before its slot. With bursts, no span of
//! time has more of them than the burst and one for each interval in it, of every rate. Living, punctual shards
//! start jobs in ticket order; only while a running limit holds them up may near neighbours swap. A shard
//! that misses its slot loses the slot, never the job. A killed process costs at most the slots that pass
//! until its lease ends. A job starts at most once for each grant it gets; while the state is unreachable
//! nothing starts unless one [chose](WhenStateIsLost) otherwise, jobs wait, and work resumes by itself. A
//! shard with nothing to do has no timer, no task and no I/O; one that waits for long listens for changes.
//!
//! A job is started by a slot and then runs freely: how long it runs does not matter to the pace, unless
//! [`max_running`](Builder::max_running) limits how many run at once.
//!
//! # Stopping and starting again
//!
//! [`pause`](IntervalQueue::pause) stops all shards, [`resume`](IntervalQueue::resume) starts them again: those
//! with jobs waiting listen for it, or look every two seconds or so where the state cannot tell. With
//! [`wake_ups`](Builder::wake_ups) off they have no task and no timer in a pause, and start with their next
//! [`add`](IntervalQueue::add), [`start`](IntervalQueue::start) or [`tick`](IntervalQueue::tick), which a
//! signal handler, an HTTP endpoint or a cron job can call at any time.
//!
//! # Many queues
//!
//! One for each customer, host or API key: [`IntervalQueues`] opens thousands by their keys over one
//! connection and drops those that are idle.
//!
//! # Shared state
//!
//! [`connect`] lists the URLs, and gives a [`Store`] that several queues can share. [`MemoryState`] is always
//! there; features bring the others:
//!
//! | feature | state |
//! |---|---|
//! | `json-file` (default) | a JSON file; with `json-file-watch` it tells of changes, see [`WakeUps`] |
//! | `directory` | a directory with a readable file for each stored task, and the pace in a JSON file; SQLite comes along |
//! | `sqlite` | an SQLite database; SQLite comes along, and needs a C compiler |
//! | `redis` | Redis or Valkey; with `redis-tls`, `redis-sentinel`, `redis-cluster` also those |
//! | `postgres` | PostgreSQL; with `postgres-tls` over TLS |
//!
//! [`_guide::choosing_a_state`] compares them. For one of your own, implement [`SharedState`] from
//! [`contract`]. To share a connection or a pool with the application, or to open a state by code, take the
//! crate of the state, such as `interval-queue-postgres`, and hand it to [`Builder::open`].
//!
//! # Clients of an API
//!
//! With the feature `tower`, a layer paces any `tower` service: a client made with reqwest, tonic or hyper,
//! or a server. With `http`, another one makes all processes wait as long as a response asks for in
//! `Retry-After` or `RateLimit`.
//!
//! # Seeing what it does
//!
//! Jobs run in a span of [`tracing`](https://docs.rs/tracing), whose parent is the one they were added in;
//! what happens to the queue is an event, and with the feature `metrics` it is counted. [`telemetry`] lists
//! all names.
//!
//! # Testing your service
//!
//! On a [`MemoryState`] the queue follows tokio's paused time: a test of an hour's pacing takes milliseconds,
//! and every example of this documentation is one.
// docs.rs says which feature brings what.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod _guide;
mod adding;
mod builder;
mod clock;
mod control;
mod driver;
mod ending;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod host;
mod housekeeping;
#[cfg(feature = "http")]
pub mod http;
mod job;
mod job_builder;
mod limits;
mod line;
mod options;
mod pace;
mod pull;
mod queue;
mod queues;
mod retry;
mod shard;
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
pub use control::Tick;
pub use ending::Shutdown;
pub use error::{Error, ErrorKind};
pub use host::Host;
pub use interval_queue_contract as contract;
pub use interval_queue_contract::{
    Deletion, InvalidInput, Label, Late, MAX_LEAD, MaxRunning, Micros, OnExisting, Presence, QueueName, Rate,
    Rates, Record, Settings, ShardId, SharedState, Snapshot, Standing, StateError, StateErrorKind, Ticket,
};
pub use interval_queue_line::{SpaceBy, WhenStateIsLost};
pub use interval_queue_memory::MemoryState;
#[doc(hidden)]
pub use interval_queue_task_contract as task_contract;
pub use job::JobHandle;
pub use job_builder::{InPlace, JobBuilder, Many, Retrying};
pub use limits::{Limits, Turns};
pub use options::JobOptions;
pub use pace::{Counted, DAY, HOUR, MINUTE, Pace, SECOND};
pub use pull::{Choice, Pull, Weighed};
pub use queue::IntervalQueue;
pub use queues::{IntervalQueues, QueuesBuilder};
pub use retry::Retry;
pub use shard::JobGroup;
pub use status::{Reason, Status};
pub use store::{StateSource, Store, connect};
pub use turn::Turn;
pub use wake_ups::WakeUps;
