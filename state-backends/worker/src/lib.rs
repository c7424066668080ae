//! A worker of stored tasks as a state machine: what it holds, what it says to the store and when, and what it
//! makes of the answers. No I/O, no clock, no lock, no randomness. What a handler is, it is not told.
//!
//! In go [replies](Worker::absorb) and [failures](Worker::fail) of the store, what [looks](Worker::look) at the rate
//! [found](Worker::found), the [ends](Worker::ended) of runs, and with all of it the time. Out come the tasks that [start](Worker::start), the
//! [runs that have to end](Worker::order), and what the driver does [next](Worker::next): a step to send, or
//! until when to sleep. After whatever went in, the driver carries out the orders, starts what can start, and
//! asks what is next, in this order.
//!
//! The crate `interval-queue-tasks` drives it with handlers. The model check and the simulator drive the same
//! machine. It is no interface for anybody else, and may change at any time.
//!
//! | noun | in |
//! |---|---|
//! | the worker | `worker.rs`; what it does: `talk.rs`, `hear.rs`, `stop.rs` |
//! | what it holds | `held.rs` |
//! | contact with the store | `contact.rs` |
//! | the rate of the queue, and what may start | `pace.rs` |

mod contact;
mod hear;
mod held;
mod pace;
mod starts;
mod stop;
mod talk;
mod worker;

pub use contact::{COMMAND_TIMEOUT, Contact, Failing, POLL, RETRY, UNDER_LOAD, UnderWay, retries};
pub use hear::Heard;
pub use held::{Because, Held, Order, RunId, Running};
pub use pace::{FRESH, Pace, WATCH_RATE};
pub use talk::{Asks, Next};
pub use worker::{Identity, Stopping, Worker};
