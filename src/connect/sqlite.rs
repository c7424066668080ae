//! An SQLite database.

use interval_queue_contract::InvalidInput;
use interval_queue_sqlite::{Builder, Durability, SqliteState};
use interval_queue_store::Url;

pub(super) fn parse(mut url: Url) -> Result<Builder, InvalidInput> {
    let path = url.path("sqlite:PATH, as in sqlite:pace.db, or memory: for one process")?;
    if path == ":memory:" {
        let text =
            "sqlite::memory: is no place that processes share: use sqlite:PATH, or memory: for one process";
        return Err(InvalidInput::new(text));
    }
    let mut builder = SqliteState::builder(path);
    let durabilities = [("full", Durability::Full), ("relaxed", Durability::Relaxed)];
    if let Some(durability) = url.choice("durability", &durabilities)? {
        builder = builder.durability(durability);
    }
    if let Some(timeout) = url.duration("lock_timeout")? {
        builder = builder.lock_timeout(timeout);
    }
    url.finish()?;
    Ok(builder)
}
