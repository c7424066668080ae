//! A JSON file.

use interval_queue_contract::InvalidInput;
use interval_queue_json_file::{Builder, Clock, Fsync, JsonFileState, Replacement};
use interval_queue_store::Url;

pub(super) fn parse(mut url: Url) -> Result<Builder, InvalidInput> {
    let mut builder = JsonFileState::builder(url.path("file:PATH, as in file:pace.json")?);
    if let Some(fsync) = url.choice("fsync", &[("never", Fsync::Never), ("always", Fsync::Always)])? {
        builder = builder.fsync(fsync);
    }
    let ways = [("in-place", Replacement::InPlace), ("rename", Replacement::Rename)];
    if let Some(replacement) = url.choice("replacement", &ways)? {
        builder = builder.replacement(replacement);
    }
    let clocks = [("host", Clock::Host), ("server", Clock::FileServer)];
    if let Some(clock) = url.choice("clock", &clocks)? {
        builder = builder.clock(clock);
    }
    if let Some(timeout) = url.duration("lock_timeout")? {
        builder = builder.lock_timeout(timeout);
    }
    url.finish()?;
    Ok(builder)
}
