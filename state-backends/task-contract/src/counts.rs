//! What is counted, by kind: exact at every instant, since it is stored with what it counts.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::{Kind, State};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counted {
    /// Tasks that are there in this state.
    Now(State),
    /// Tasks that were ever added.
    EverAdded,
    /// Runs that were ever begun.
    EverLeased,
    /// Tasks that were ever done; one that is retried and done again counts again.
    EverDone,
    /// Tasks that have ever failed.
    EverFailed,
    /// Tasks that were ever cancelled.
    EverCancelled,
}

impl Counted {
    /// All.
    pub fn all() -> impl Iterator<Item = Self> {
        let ever = [Self::EverAdded, Self::EverLeased, Self::EverDone, Self::EverFailed, Self::EverCancelled];
        State::ALL.into_iter().map(Self::Now).chain(ever)
    }

    /// What counts those that ever ended so; none: it is no end that is counted.
    pub(crate) fn ever(end: State) -> Option<Self> {
        match end {
            State::Done => Some(Self::EverDone),
            State::Failed => Some(Self::EverFailed),
            State::Cancelled => Some(Self::EverCancelled),
            _ => None,
        }
    }

    /// Its name in stores.
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

    /// What has this name.
    pub fn of_str(text: &str) -> Option<Self> {
        Self::all().find(|counted| counted.as_str() == text)
    }
}

/// By its name.
impl Serialize for Counted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A number of tasks that was wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Corrected {
    /// The kind of the tasks.
    pub kind: Kind,
    /// Their state.
    pub state: State,
    /// How many there were said to be, which can be below zero.
    pub before: i64,
    /// How many are stored.
    pub counted: u64,
}
