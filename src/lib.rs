//! Many processes, one pace.
mod builder;
mod clock;
mod connect;
mod driver;
mod error;
mod job;
mod line;
mod parameters;
mod queue;
mod retry;
mod shard;
mod status;
mod talk;
mod turn;

pub use builder::Builder;
pub use connect::connect;
pub use error::{Error, ErrorKind};
pub use interval_queue_contract as contract;
pub use interval_queue_contract::{
    InvalidInput, Label, Late, MAX_LEAD, MaxRunning, Micros, OnExisting, Presence, QueueName, Record,
    Settings, ShardId, SharedState, Snapshot, Standing, StateError, StateErrorKind, Ticket,
};
pub use job::{JobHandle, JobOptions};
pub use queue::{IntervalQueue, Shutdown, Tick};
pub use retry::Retry;
pub use status::{Reason, Status};
pub use turn::Turn;
