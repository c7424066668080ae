//! What a task waits for: others of its queue.

use interval_queue_contract::InvalidInput;
use serde::{Deserialize, Serialize};

use crate::{Key, State, TaskId};

/// From an upstream to the downstream that waits for its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// What is waited for.
    pub up: TaskId,
    /// What waits.
    pub down: TaskId,
    /// What the downstream calls the upstream's result; none: the upstream's id.
    pub name: Option<Key>,
    /// What becomes of the downstream if the upstream does not end well.
    pub on_failure: OnFailure,
    /// What was told of the upstream.
    pub state: EdgeState,
    /// In which life of the upstream that was.
    pub generation: u32,
}

/// What becomes of a task whose upstream failed or was cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// It is cancelled, and so are those that wait for it, as their edges say. The default.
    #[default]
    Cancel,
    /// It runs all the same.
    Run,
    /// It waits until somebody retries the upstream.
    Wait,
}

/// What was told of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeState {
    /// Nobody has looked at the upstream yet.
    New,
    /// It has not ended.
    Open,
    /// It is done.
    Met,
    /// It failed, and the downstream runs all the same.
    Failed,
    /// It failed, and the downstream waits.
    Held,
    /// It failed, and the downstream is cancelled.
    Cut,
}

impl EdgeState {
    /// Whether the downstream waits for it.
    pub fn is_pending(self) -> bool {
        matches!(self, Self::New | Self::Open | Self::Held)
    }

    /// Its name in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Open => "open",
            Self::Met => "met",
            Self::Failed => "failed",
            Self::Held => "held",
            Self::Cut => "cut",
        }
    }
}

impl OnFailure {
    /// Its name in stores and documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Run => "run",
            Self::Wait => "wait",
        }
    }
}

impl std::str::FromStr for OnFailure {
    type Err = InvalidInput;
    fn from_str(text: &str) -> Result<Self, InvalidInput> {
        [Self::Cancel, Self::Run, Self::Wait].into_iter().find(|one| one.as_str() == text).ok_or_else(|| {
            InvalidInput::new(format!("{text:?} is nothing to do on a failure: take cancel, run or wait"))
        })
    }
}

impl Edge {
    /// Whether its downstream has to be told of the end of an upstream in this life.
    pub fn is_unnotified(&self, generation: u32) -> bool {
        match self.state {
            EdgeState::New | EdgeState::Open => true,
            EdgeState::Held => self.generation < generation,
            EdgeState::Met | EdgeState::Failed | EdgeState::Cut => false,
        }
    }

    /// What it becomes when its upstream has ended so.
    pub(crate) fn after(&self, end: State) -> EdgeState {
        match (end, self.on_failure) {
            (State::Done, _) => EdgeState::Met,
            (_, OnFailure::Run) => EdgeState::Failed,
            (_, OnFailure::Wait) => EdgeState::Held,
            (_, OnFailure::Cancel) => EdgeState::Cut,
        }
    }
}
