//! A worker of stored tasks as a state machine: what it holds, which steps it sends to the store
//! when, and the effect of the replies. No I/O, no clock, no lock, no randomness. Handlers are
//! opaque.
//!
//! Input: [replies](Worker::absorb) and [failures](Worker::fail) of the store,
//! [results](Worker::finish_lookup) of [lookups](Worker::begin_lookup) of the rate,
//! [ends](Worker::ended) of runs, and the time with each call. Output: tasks to
//! [start](Worker::start),
//! [runs that must end](Worker::order), and what the driver does [next](Worker::next): send a step,
//! or sleep until an instant. After each input the driver executes the orders, starts what can
//! start, and asks for the next action, in this order.
//!
//! The crate `interval-queue-tasks` drives the machine with handlers; the model check and the
//! simulator drive it, too. The interface is private to them and may change at any time.
//!
//! | noun | in |
//! |---|---|
//! | the worker | `worker.rs`, `outbound.rs`, `inbound.rs`, `stop.rs` |
//! | tasks and runs that it holds, their logs | `held.rs`, `run_id.rs`, `unsent_logs.rs` |
//! | connection to the store | `connection.rs` |
//! | the rate of the queue, and starts | `pace.rs`, `starts.rs` |
//! | tasks leased ahead of free permits | `prefetch.rs`, `ahead.rs` |

mod ahead;
mod connection;
mod held;
mod inbound;
mod outbound;
mod pace;
mod prefetch;
mod run_id;
mod starts;
mod stop;
mod unsent_logs;
mod worker;

pub use connection::{
    COMMAND_TIMEOUT, Connection, Failing, LOAD_POLL_INTERVAL, POLL_INTERVAL, RETRY, UnderWay, retries,
};
pub use held::{Because, Held, Order, Running};
pub use inbound::Absorbed;
pub use outbound::{Asks, Next};
pub use pace::{LOOKUP_INTERVAL, MAX_LOOKUP_AGE, Pace};
pub use prefetch::{MAX_PREFETCH, MAX_WAIT, PREFETCH_PER_PERMIT, Prefetch};
pub use run_id::RunId;
pub use unsent_logs::UnsentLogs;
pub use worker::{Identity, Stopping, Worker};
