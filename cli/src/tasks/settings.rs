//! The settings of a queue of tasks as a file: printed by `tasks set --json` and read by `--from`.

use std::{fs, io, path::Path};

use interval_queue::{
    MaxRunning,
    task_contract::{Settings, SettingsChange},
};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::exit::{DATAERR, Failure, NOINPUT};

/// Fields that are durations. Their printed names end with the unit, microseconds.
const DURATION_FIELDS: [&str; 7] =
    ["ageing", "done", "failed", "cancelled", "backoff", "max_backoff", "timeout"];
const UNIT_SUFFIX: &str = "_us";

/// Formats settings, or a part of them.
pub(super) fn dump<T: Serialize>(settings: &T) -> Value {
    // Settings are numbers and names, which are always valid JSON.
    renamed(serde_json::to_value(settings).unwrap_or_default(), &|name| match DURATION_FIELDS.contains(&name)
    {
        true => format!("{name}{UNIT_SUFFIX}"),
        false => name.to_owned(),
    })
}

/// Reads a change from a file with some or all settings. Settings that the file does not name stay.
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
    let mut all = dump(now);
    merge(&mut all, given, "").map_err(&wrong)?;
    let plain = renamed(all, &|name| name.strip_suffix(UNIT_SUFFIX).unwrap_or(name).to_owned());
    let settings: Settings = serde_json::from_value(plain).map_err(|error| wrong(error.to_string()))?;
    // Unchanged settings are left out: another process may change them meanwhile.
    let max_running = settings.max_running.map_or(MaxRunning::Unlimited, MaxRunning::AtMost);
    Ok(SettingsChange {
        max_running: if settings.max_running == now.max_running { MaxRunning::Keep } else { max_running },
        key_limit: Some(settings.key_limit).filter(|limit| *limit != now.key_limit),
        ageing: Some(settings.ageing).filter(|ageing| *ageing != now.ageing),
        keep: Some(settings.keep).filter(|keep| *keep != now.keep),
        max_payload: Some(settings.max_payload).filter(|size| *size != now.max_payload),
        policy: Some(settings.policy).filter(|policy| *policy != now.policy),
    })
}

/// Renames all fields.
fn renamed(value: Value, name: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(field, value)| (name(&field), renamed(value, name)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        other => other,
    }
}

/// Replaces values of `all` by given ones. Unknown fields are an error.
fn merge(all: &mut Value, given: Value, at: &str) -> Result<(), String> {
    match (all, given) {
        (Value::Object(all), Value::Object(given)) => {
            for (name, value) in given {
                let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                let Some(known) = all.get_mut(&name) else {
                    return Err(format!("there is no setting {path:?}"));
                };
                merge(known, value, &path)?;
            }
            Ok(())
        }
        (Value::Object(_), other) if at.is_empty() => Err(format!("settings are an object, not {other}")),
        (Value::Object(_), other) => Err(format!("{at:?} is an object, not {other}")),
        (all, given) => {
            *all = given;
            Ok(())
        }
    }
}
