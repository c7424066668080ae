//! The settings of a queue of tasks as a file: printed by `tasks set --json` and read by `--from`.

use std::{fs, io, path::Path};

use interval_queue::MaxRunning;
use interval_queue_documents::Settings as Document;
use interval_queue_tasks::{Settings, SettingsChange};
use serde_json::Value;

use super::kind_policy;
use crate::exit::{DATAERR, Failure, NOINPUT};

/// Settings that the file does not name stay.
pub(super) fn load(path: &Path, now: &Settings) -> Result<SettingsChange, Failure> {
    let shown = path.display();
    let text = match path.to_str() {
        Some("-") => io::read_to_string(io::stdin()),
        _ => fs::read_to_string(path),
    };
    let text = text.map_err(|error| Failure::new(NOINPUT, format!("cannot read {shown}: {error}")))?;
    let wrong = |why: String| {
        Failure::new(DATAERR, format!("{shown}: {why}; `tasks set --json` prints all settings"))
    };
    let given: Value =
        serde_json::from_str(&text).map_err(|error| wrong(format!("it is no JSON: {error}")))?;
    let settings = Settings::from(&Document::from(now).merged(given).map_err(&wrong)?);
    // Another process may change unchanged settings meanwhile.
    let max_running = settings.max_running.map_or(MaxRunning::Unlimited, MaxRunning::AtMost);
    Ok(SettingsChange {
        max_running: if settings.max_running == now.max_running { MaxRunning::Keep } else { max_running },
        key_limit: Some(settings.key_limit).filter(|limit| *limit != now.key_limit),
        ageing: Some(settings.ageing).filter(|ageing| *ageing != now.ageing),
        keep: Some(settings.keep).filter(|keep| *keep != now.keep),
        max_payload: Some(settings.max_payload).filter(|size| *size != now.max_payload),
        policy: Some(settings.policy).filter(|policy| *policy != now.policy),
        kinds: kind_policy::differences(now, &settings),
    })
}
