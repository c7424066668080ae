//! Edges between tasks of a queue.

use interval_queue_contract::InvalidInput;
use serde::{Deserialize, Serialize};

use crate::{Key, State, TaskId};

/// An edge from an upstream to the downstream that waits for its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// The upstream.
    pub up: TaskId,
    /// The downstream.
    pub down: TaskId,
    /// Name of the upstream's result. `None`: the upstream's id.
    pub name: Option<Key>,
    /// Effect of an upstream that does not succeed.
    pub on_failure: OnFailure,
    /// The upstream's end, as notified.
    pub state: EdgeState,
    /// The upstream's generation that `state` is about.
    #[serde(default)]
    pub generation: u32,
}

/// Effect of an upstream that failed or was cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// Cancel the task; its downstreams act as their edges require. The default.
    #[default]
    Cancel,
    /// Run the task all the same.
    Run,
    /// Let the task wait until the upstream is retried.
    Wait,
}

/// An upstream's end, as notified to a downstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeState {
    /// The upstream was not checked yet.
    New,
    /// The upstream has not ended.
    Open,
    /// The upstream failed; the downstream waits.
    Held,
    /// The upstream is done.
    Met,
    /// The upstream failed; the downstream runs all the same.
    Failed,
    /// The upstream failed; the downstream is cancelled.
    Cut,
}

impl EdgeState {
    /// Whether the downstream waits for this edge.
    pub fn is_pending(self) -> bool {
        matches!(self, Self::New | Self::Open | Self::Held)
    }

    /// Name in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Open => "open",
            Self::Held => "held",
            Self::Met => "met",
            Self::Failed => "failed",
            Self::Cut => "cut",
        }
    }
}

impl OnFailure {
    /// Name in stores and documents.
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
    /// Whether the downstream was not notified of the upstream's end in this generation.
    pub fn is_unnotified(&self, generation: u32) -> bool {
        match self.state {
            EdgeState::New | EdgeState::Open => true,
            EdgeState::Held => self.generation < generation,
            EdgeState::Met | EdgeState::Failed | EdgeState::Cut => false,
        }
    }

    pub(crate) fn after(&self, end: State) -> EdgeState {
        match (end, self.on_failure) {
            (State::Done, _) => EdgeState::Met,
            (_, OnFailure::Run) => EdgeState::Failed,
            (_, OnFailure::Wait) => EdgeState::Held,
            (_, OnFailure::Cancel) => EdgeState::Cut,
        }
    }
}
