//! Rate limits: the record of each queue in a table.

mod row;
mod state;
mod statements;

pub use self::state::PostgresState;
pub(crate) use self::statements::PACE;
