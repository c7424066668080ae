//! Settings stored with a queue.

use std::collections::BTreeMap;

use interval_queue_contract::{InvalidInput, MaxRunning, Micros};
use serde::{Deserialize, Serialize};

use crate::{
    DEFAULT_MAX_PAYLOAD, KEEP_IDS, Kind, MAX_AGEING, MAX_DELAY, MAX_KIND_POLICIES, MAX_REPLY, Policy,
    PolicyOverride, State, Task,
};

/// Settings of a queue of tasks. Its rate limit is that of the interval queue of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Maximum number of leased tasks. `None`: unlimited. Default: `None`.
    pub max_running: Option<u32>,
    /// Maximum number of ready or leased tasks of one key. Default: 1.
    pub key_limit: u32,
    /// How long a task waits to become as urgent as a new one with priority higher by 1. A change
    /// affects tasks added later. Default: a day.
    pub ageing: Micros,
    /// Retention of ended tasks. Default: done and cancelled a day, failed 14 days.
    pub keep: Keep,
    /// Largest payload and result, in bytes. Default: 1 MiB.
    pub max_payload: u32,
    /// Policy of failures; kinds and tasks may override parts.
    pub policy: Policy,
    /// Parts of the policy for all tasks of a kind; tasks may override them. At most 100 kinds,
    /// each with at least one part. Default: empty.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<Kind, PolicyOverride>,
}

/// Retention of ended tasks: at least 20 minutes, and as long as a downstream is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Keep {
    /// Retention of done tasks.
    pub done: Micros,
    /// Retention of failed tasks.
    pub failed: Micros,
    /// Retention of cancelled tasks.
    pub cancelled: Micros,
    /// Most done tasks kept, the latest. `None`: unlimited. Tasks of the last 20 minutes and tasks
    /// that a downstream needs stay and count.
    pub most_done: Option<u32>,
    /// As [`most_done`](Self::most_done), for failed tasks.
    pub most_failed: Option<u32>,
    /// As [`most_done`](Self::most_done), for cancelled tasks.
    pub most_cancelled: Option<u32>,
}

const DAY: Micros = Micros::from_millis(24 * 3_600_000);

impl Default for Keep {
    fn default() -> Self {
        Self {
            done: DAY,
            failed: DAY * 14,
            cancelled: DAY,
            most_done: None,
            most_failed: None,
            most_cancelled: None,
        }
    }
}

impl Keep {
    /// Retention of tasks in this ended state.
    pub fn of(&self, end: State) -> Micros {
        let keep = match end {
            State::Done => self.done,
            State::Failed => self.failed,
            State::Cancelled => self.cancelled,
            _ => Micros::ZERO,
        };
        keep.max(KEEP_IDS)
    }

    /// Most tasks in this ended state that are kept.
    pub fn most(&self, end: State) -> Option<u32> {
        match end {
            State::Done => self.most_done,
            State::Failed => self.most_failed,
            State::Cancelled => self.most_cancelled,
            _ => None,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_running: None,
            key_limit: 1,
            ageing: DAY,
            keep: Keep::default(),
            max_payload: DEFAULT_MAX_PAYLOAD,
            policy: Policy::default(),
            kinds: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// The policy of tasks of this kind that set nothing themselves.
    pub fn policy_of_kind(&self, kind: &Kind) -> Policy {
        self.kinds.get(kind).map_or(self.policy, |own| own.over(&self.policy))
    }

    /// The policy in force for `task`: its own parts, then those of its kind, then the queue's.
    pub fn policy_of(&self, task: &Task) -> Policy {
        task.policy.over(&self.policy_of_kind(&task.kind))
    }
}

/// A change of settings. `None`: unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SettingsChange {
    /// [`Settings::max_running`].
    pub max_running: MaxRunning,
    /// [`Settings::key_limit`].
    pub key_limit: Option<u32>,
    /// [`Settings::ageing`].
    pub ageing: Option<Micros>,
    /// [`Settings::keep`].
    pub keep: Option<Keep>,
    /// [`Settings::max_payload`].
    pub max_payload: Option<u32>,
    /// [`Settings::policy`].
    pub policy: Option<Policy>,
    /// [`Settings::kinds`]: replaces the parts of each kind in the map; an empty override removes
    /// them. Other kinds are unchanged.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<Kind, PolicyOverride>,
}

impl SettingsChange {
    /// Applies the change to `settings`.
    pub fn on(&self, settings: &Settings) -> Settings {
        let mut kinds = settings.kinds.clone();
        kinds.extend(self.kinds.clone());
        kinds.retain(|_, own| !own.is_empty());
        Settings {
            max_running: match self.max_running {
                MaxRunning::AtMost(limit) => Some(limit),
                MaxRunning::Unlimited => None,
                _ => settings.max_running,
            },
            key_limit: self.key_limit.unwrap_or(settings.key_limit),
            ageing: self.ageing.unwrap_or(settings.ageing),
            keep: self.keep.unwrap_or(settings.keep),
            max_payload: self.max_payload.unwrap_or(settings.max_payload),
            policy: self.policy.unwrap_or(settings.policy),
            kinds,
        }
    }

    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        let wrong = |text: String| Err(InvalidInput::new(text));
        if let MaxRunning::AtMost(0) = self.max_running {
            return wrong("max running 0: give at least 1, or pause the queue".into());
        }
        if self.key_limit == Some(0) {
            return wrong("key limit 0: give at least 1".into());
        }
        if let Some(ageing) = self.ageing.filter(|&ageing| ageing > MAX_AGEING) {
            return wrong(format!(
                "ageing {:?}: give at most 366 days a step of priority",
                ageing.to_duration()
            ));
        }
        if let Some(size) = self.max_payload.filter(|&size| size as usize > MAX_REPLY || size == 0) {
            return wrong(format!("max payload {size}: give 1 to {MAX_REPLY} bytes"));
        }
        let longest = self.keep.map(|keep| keep.done.max(keep.failed).max(keep.cancelled));
        if let Some(longest) = longest.filter(|&longest| longest > MAX_DELAY) {
            let text = format!("keep {:?}: keep ended tasks ten years at most", longest.to_duration());
            return wrong(text);
        }
        if let Some(policy) = &self.policy {
            policy.check()?;
        }
        if self.kinds.len() > MAX_KIND_POLICIES {
            return wrong(format!(
                "a change of the policies of {} kinds: give at most {MAX_KIND_POLICIES}",
                self.kinds.len()
            ));
        }
        self.kinds.iter().try_for_each(|(kind, own)| {
            own.check().map_err(|error| InvalidInput::new(format!("kind {:?}: {error}", kind.as_str())))
        })
    }
}
