//! Settings of a queue, as `tasks set --json` prints and `--from` reads them.

use std::collections::BTreeMap;

use interval_queue::Micros;
use interval_queue_tasks::{Kind, contract};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{OwnPolicy, Policy};

/// Settings of all tasks of a queue: `tasks set --json`. `tasks set --from` reads all or some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "settings", title = "Settings")]
pub struct Settings {
    /// Time after which a waiting task is as urgent as a new one with priority higher by 1. In
    /// microseconds.
    #[schemars(range(min = 1))]
    pub ageing_us: u64,
    /// Retention of ended tasks.
    pub keep: Keep,
    /// Most tasks of one key that run at once.
    #[schemars(range(min = 1))]
    pub key_limit: u32,
    /// Parts of the policy for all tasks of a kind, by kind.
    #[schemars(with = "BTreeMap<String, OwnPolicy>")]
    pub kinds: BTreeMap<Kind, OwnPolicy>,
    /// Largest payload and result, in bytes.
    #[schemars(range(min = 1))]
    pub max_payload: u32,
    /// Most tasks that run at once; null: unlimited.
    #[schemars(range(min = 1))]
    pub max_running: Option<u32>,
    /// How often tasks run, and the waits in between.
    pub policy: Policy,
}

/// Retention of ended tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "keep", title = "Retention")]
pub struct Keep {
    /// Retention of cancelled tasks. In microseconds.
    pub cancelled_us: u64,
    /// Retention of done tasks. In microseconds.
    pub done_us: u64,
    /// Retention of failed tasks. In microseconds.
    pub failed_us: u64,
    /// Most cancelled tasks kept; null: unlimited.
    pub most_cancelled: Option<u32>,
    /// Most done tasks kept; null: unlimited.
    pub most_done: Option<u32>,
    /// Most failed tasks kept; null: unlimited.
    pub most_failed: Option<u32>,
}

impl From<&contract::Settings> for Settings {
    fn from(settings: &contract::Settings) -> Self {
        let keep = &settings.keep;
        Self {
            ageing_us: settings.ageing.get(),
            keep: Keep {
                cancelled_us: keep.cancelled.get(),
                done_us: keep.done.get(),
                failed_us: keep.failed.get(),
                most_cancelled: keep.most_cancelled,
                most_done: keep.most_done,
                most_failed: keep.most_failed,
            },
            key_limit: settings.key_limit,
            kinds: settings
                .kinds
                .iter()
                .filter_map(|(kind, own)| Some((kind.clone(), OwnPolicy::of(own)?)))
                .collect(),
            max_payload: settings.max_payload,
            max_running: settings.max_running,
            policy: Policy::of(&settings.policy),
        }
    }
}

impl From<&Settings> for contract::Settings {
    fn from(settings: &Settings) -> Self {
        let (keep, policy) = (&settings.keep, &settings.policy);
        Self {
            ageing: Micros::new(settings.ageing_us),
            keep: contract::Keep {
                cancelled: Micros::new(keep.cancelled_us),
                done: Micros::new(keep.done_us),
                failed: Micros::new(keep.failed_us),
                most_cancelled: keep.most_cancelled,
                most_done: keep.most_done,
                most_failed: keep.most_failed,
            },
            key_limit: settings.key_limit,
            kinds: settings.kinds.iter().map(|(kind, own)| (kind.clone(), own.into())).collect(),
            max_payload: settings.max_payload,
            max_running: settings.max_running,
            policy: contract::Policy {
                max_attempts: policy.max_attempts,
                max_retries: policy.max_retries,
                backoff: Micros::new(policy.backoff_us),
                max_backoff: Micros::new(policy.max_backoff_us),
                timeout: policy.timeout_us.map(Micros::new),
            },
        }
    }
}

impl Settings {
    /// Settings with those given replaced, which may be some or all. In `kinds`, null removes a kind
    /// or a part of its policy.
    ///
    /// # Errors
    ///
    /// A setting does not exist or has another type. The text names it.
    pub fn merged(&self, given: Value) -> Result<Self, String> {
        let mut all = serde_json::to_value(self).map_err(|error| error.to_string())?;
        merge(&mut all, given, "")?;
        serde_json::from_value(all).map_err(|error| error.to_string())
    }
}

/// Replaces the given fields; fields that do not exist are errors.
fn merge(all: &mut Value, given: Value, at: &str) -> Result<(), String> {
    match (all, given) {
        (Value::Object(all), Value::Object(given)) => {
            for (name, value) in given {
                let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                let Some(known) = all.get_mut(&name) else {
                    return Err(format!("there is no setting {path:?}"));
                };
                match (known, value) {
                    (Value::Object(known), Value::Object(kinds)) if path == "kinds" => {
                        merge_kinds(known, kinds)?;
                    }
                    (known, value) => merge(known, value, &path)?,
                }
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

/// Replaces the given parts of the given kinds. The caller checks the names of the parts.
fn merge_kinds(all: &mut Map<String, Value>, given: Map<String, Value>) -> Result<(), String> {
    for (kind, own) in given {
        match own {
            Value::Null => drop(all.remove(&kind)),
            Value::Object(parts) => {
                let known = all.entry(kind).or_insert_with(|| Map::new().into());
                for (name, part) in parts {
                    known[name] = part;
                }
            }
            other => return Err(format!("\"kinds.{kind}\" is an object or null, not {other}")),
        }
    }
    Ok(())
}
