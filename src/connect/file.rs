//! A JSON file.

use interval_queue_contract::InvalidInput;
use interval_queue_json_file::{Builder, Clock, Fsync, JsonFileState, Replacement};

use super::parameters::{Parameters, values::path};

pub(super) fn parse(rest: &str) -> Result<Builder, InvalidInput> {
    let (place, mut parameters) = Parameters::split(rest)?;
    let path = path(place)?;
    if path.is_empty() {
        return Err(InvalidInput::new("file: without a path: use file:PATH, as in file:pace.json"));
    }
    let mut builder = JsonFileState::builder(path);
    if let Some(fsync) = parameters.choice("fsync", &[("never", Fsync::Never), ("always", Fsync::Always)])? {
        builder = builder.fsync(fsync);
    }
    let ways = [("in-place", Replacement::InPlace), ("rename", Replacement::Rename)];
    if let Some(replacement) = parameters.choice("replacement", &ways)? {
        builder = builder.replacement(replacement);
    }
    let clocks = [("host", Clock::Host), ("server", Clock::FileServer)];
    if let Some(clock) = parameters.choice("clock", &clocks)? {
        builder = builder.clock(clock);
    }
    if let Some(timeout) = parameters.duration("lock_timeout")? {
        builder = builder.lock_timeout(timeout);
    }
    parameters.finish("file:", &["fsync", "replacement", "clock", "lock_timeout"])?;
    Ok(builder)
}
