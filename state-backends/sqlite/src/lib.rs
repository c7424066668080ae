//! Shared state of the interval queue in an SQLite database.

mod builder;
mod state;

pub use builder::{Builder, Durability};
pub use state::SqliteState;
