//! The contract between the interval queue and its stores.
//!
//! The processes of a queue share one small [`Record`]. This crate holds the record, the commands
//! that shards send to it, and all rules about tickets, slots and time as one pure function:
//! [`rules::apply`]. A **backend** implements [`SharedState`]: it runs that function atomically on
//! a stored record and adds no rule.
//!
//! Only authors of backends need this crate; begin with [`SharedState`]. Applications use
//! `interval-queue`.
//!
//! # Words
//!
//! | word | meaning |
//! |---|---|
//! | queue | a name within a store; all shards that open it share its rates |
//! | shard | one `IntervalQueue`: a random id and its own waiting jobs |
//! | ticket | a unique, rising number, taken when a job is added: its place in the queue |
//! | current | the highest ticket that has started |
//! | slot | an instant on the store's clock at which one job may start |
//! | rate | one start per interval, with bursts up to a limit |
//! | meter | the state of one rate; a slot comes when every meter allows it |
//! | head | the lowest outstanding ticket of a shard |
//! | presence | a shard's entry in the record |
//! | grant | the reply "start this ticket at its slot" |
//! | lead | how early a shard may request a slot, so that the reply arrives in time |
//! | hold | nothing starts before an instant; any shard may set it |
//! | late ticket | up to `current` and not started: its shard missed the slot |
//!
//! # Restrictions
//!
//! This crate does no I/O, reads no clock, spawns nothing and draws no random number. Time enters
//! as `now` of a [`Reading`]. All numbers are integers, all operations total.

mod command;
mod error;
#[doc(hidden)]
pub mod judge;
mod limits;
mod memory;
mod meter;
#[doc(hidden)]
pub mod name;
#[doc(hidden)]
pub mod outage;
mod rate;
mod record;
mod reply;
pub mod rules;
mod start_status;
mod state;
mod units;

pub use command::{Ask, Change, Command, Deletion, Late, LateStart, MaxRunning, OnExisting, Step, Take};
pub use error::{InvalidInput, StateError, StateErrorKind, describe};
pub use limits::*;
pub use memory::Memory;
pub use meter::{Meter, Meters};
pub use name::{Label, QueueName, ShardId};
pub use rate::{MAX_RATES, Rate, Rates};
pub use record::{LastTake, Presence, Record};
pub use reply::{Changed, Grant, Reply, Settings, Snapshot, Stepped, Taken, Wait, WaitReason};
pub use rules::Reading;
pub use start_status::StartStatus;
pub use state::{Changes, SharedState};
pub use units::{Micros, Ticket};
