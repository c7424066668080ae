//! Counts by kind, exact at every instant: stored with the tasks that they count.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::{Kind, State};

/// A counted quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counted {
    /// Tasks in this state.
    Now(State),
    /// Tasks ever added.
    EverAdded,
    /// Runs ever begun.
    EverLeased,
    /// Tasks ever done, counted again if retried and done again.
    EverDone,
    /// Tasks ever failed.
    EverFailed,
    /// Tasks ever cancelled.
    EverCancelled,
}

impl Counted {
    /// All quantities.
    pub fn all() -> impl Iterator<Item = Self> {
        let ever = [Self::EverAdded, Self::EverLeased, Self::EverDone, Self::EverFailed, Self::EverCancelled];
        State::ALL.into_iter().map(Self::Now).chain(ever)
    }

    /// Name in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Now(state) => state.as_str(),
            Self::EverAdded => "ever_added",
            Self::EverLeased => "ever_leased",
            Self::EverDone => "ever_done",
            Self::EverFailed => "ever_failed",
            Self::EverCancelled => "ever_cancelled",
        }
    }

    /// The quantity with this name.
    pub fn of_str(text: &str) -> Option<Self> {
        Self::all().find(|counted| counted.as_str() == text)
    }
}

impl Serialize for Counted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::of_str(&name).ok_or_else(|| Error::custom(format!("{name:?} is not counted")))
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A corrected number of tasks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Corrected {
    /// The kind of the tasks.
    pub kind: Kind,
    /// Their state.
    pub state: State,
    /// The wrong number; can be negative.
    pub before: i64,
    /// Number of stored tasks.
    pub counted: u64,
}
