//! The record of a queue on a PostgreSQL.

mod row;
mod state;
mod statements;

pub use self::state::PostgresState;
pub(crate) use self::statements::PACE;
