//! An SQLite database.

use interval_queue_contract::InvalidInput;
use interval_queue_sqlite::{Builder, Durability, SqliteState};

use super::parameters::{Parameters, values::path};

pub(super) fn parse(rest: &str) -> Result<Builder, InvalidInput> {
    let (place, mut parameters) = Parameters::split(rest)?;
    let path = path(place)?;
    if path.is_empty() {
        let text =
            "sqlite: without a path: use sqlite:PATH, as in sqlite:pace.db, or memory: for one process";
        return Err(InvalidInput::new(text));
    }
    if path == ":memory:" {
        let text =
            "sqlite::memory: is no place that processes share: use sqlite:PATH, or memory: for one process";
        return Err(InvalidInput::new(text));
    }
    let mut builder = SqliteState::builder(path);
    let durabilities = [("full", Durability::Full), ("relaxed", Durability::Relaxed)];
    if let Some(durability) = parameters.choice("durability", &durabilities)? {
        builder = builder.durability(durability);
    }
    if let Some(timeout) = parameters.duration("lock_timeout")? {
        builder = builder.lock_timeout(timeout);
    }
    parameters.finish("sqlite:", &["durability", "lock_timeout"])?;
    Ok(builder)
}
