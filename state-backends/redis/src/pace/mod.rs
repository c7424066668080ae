//! The rate limit of a queue in Redis: its record, maintained by one script.

pub(crate) mod answer;
pub(crate) mod keys;
mod refusal;
pub(crate) mod request;
mod state;

pub use self::state::RedisState;
