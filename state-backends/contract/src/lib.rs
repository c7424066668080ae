//! The contract between the interval queue and the places where its shared state can live.
//!
//! Many processes ("shards") pace their jobs together by one small [`Record`] per queue. This crate
//! holds that record, the commands that shards send to it, and every rule about tickets, slots and
//! time, as one pure function: [`rules::apply`]. A **state backend** is anything that can run that
//! function atomically on a stored record; it implements [`SharedState`] and adds no rule of its own.
//!
//! Application code uses the crate `interval-queue`; only the author of a backend needs this one.
//! [`SharedState`] shows a whole backend and says what it owes to its callers.
//!
//! # Words
//!
//! | word | meaning |
//! |---|---|
//! | queue | a name within a state backend; all shards that open the name share its pace |
//! | shard | one `IntervalQueue` instance: its own random id, its own waiting jobs |
//! | ticket | number taken when a job is added; unique, rising; the job's place in the queue |
//! | current | the highest ticket that has started |
//! | slot | an instant on the state's clock at which one job may start |
//! | rate | so many slots in so much time, and how many of them at once |
//! | meter | what the record keeps of one rate; a slot comes when every meter allows it |
//! | head | a shard's lowest outstanding ticket |
//! | presence | what the record knows of a shard: head, running count, lease expiry, last grants, label |
//! | grant | the state's answer "start this ticket at its slot" |
//! | lead | how early a shard may ask for its slot, so that the answer arrives before it |
//! | hold | "nobody starts before …", set by any shard |
//! | late ticket | one that is not above `current` and has not started: its shard missed its slot |
//!
//! # What this crate must not know
//!
//! It does no I/O, reads no clock, spawns nothing and draws no random number. Time enters as the
//! `now` of a [`Reading`]; every number is an integer, every operation total.

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
mod standing;
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
pub use standing::Standing;
pub use state::{Changes, SharedState};
pub use units::{Micros, Ticket};
