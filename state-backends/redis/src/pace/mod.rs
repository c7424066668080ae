//! The pace of a queue on a Redis: its record, kept by one script.

pub(crate) mod answer;
pub(crate) mod keys;
mod refusal;
pub(crate) mod request;
mod state;

pub use self::state::RedisState;
