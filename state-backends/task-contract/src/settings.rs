//! Settings stored with a queue.

use interval_queue_contract::{InvalidInput, MaxRunning, Micros};
use serde::{Deserialize, Serialize};

use crate::{DEFAULT_MAX_PAYLOAD, KEEP_IDS, MAX_AGEING, MAX_DELAY, MAX_REPLY, Policy, State};

/// Settings of a queue of tasks, for all its users. Its rate limit is that of the interval queue of
/// the same name.
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
    /// Policy of failures; tasks may override parts.
    pub policy: Policy,
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
    /// that a downstream needs stay beyond it, and count.
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
        }
    }
}

/// A change of settings. `None`: unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SettingsChange {
    /// [`Settings::max_running`].
    #[serde(skip)]
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
}

impl SettingsChange {
    /// Applies the change to `settings`.
    pub fn on(&self, settings: &Settings) -> Settings {
        let settings = settings.clone();
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
        self.policy.map_or(Ok(()), |policy| policy.check())
    }
}
