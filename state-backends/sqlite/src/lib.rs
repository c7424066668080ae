//! Shared state of the interval queue in an SQLite database.

mod builder;
mod clock;
mod database;
mod error;
mod mount;
mod path;
mod patience;
mod place;
mod schema;
mod state;
mod store;

pub use builder::{Builder, Durability};
pub use state::SqliteState;
