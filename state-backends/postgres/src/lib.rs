//! Shared state of the interval queue in PostgreSQL.

mod builder;
mod state;

pub use builder::{Builder, Durability};
pub use state::PostgresState;
