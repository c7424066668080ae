//! What names a task, a worker and a run.

use std::{fmt, str::FromStr};

use interval_queue_contract::{InvalidInput, Micros, name, name::check_some};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{MAX_KEY, MAX_KIND, MAX_TAG};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// The id with this number.
            pub const fn new(id: Uuid) -> Self {
                Self(id)
            }

            /// The lowest there can be.
            pub const FIRST: Self = Self(Uuid::nil());
            /// The highest there can be.
            pub const LAST: Self = Self(Uuid::max());

            /// Its number.
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidInput;
            fn from_str(text: &str) -> Result<Self, InvalidInput> {
                let wrong = |_| InvalidInput::new(format!("{text:?} is no {}: one looks like 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d", $what));
                Uuid::try_parse(text).map(Self).map_err(wrong)
            }
        }
    };
}

id! {
    /// The id of a task: a UUID that its producer makes before it adds the task, so that a repeated request is
    /// recognised.
    ///
    /// Tasks do not run in the order of their ids: the store keeps in which order they were added.
    TaskId, "task id"
}

id! {
    /// The id of a worker: random, one for each start of a process, so that nobody keeps the tasks of a dead one alive.
    WorkerId, "worker id"
}

/// Names tasks that are named, and those of schedules.
const NAMED: Uuid = Uuid::from_u128(0x8d1c_2a64_9b3f_5e07_a1c4_52f0_6b7e_93d8);

impl TaskId {
    /// The id before it in their order; none: it is the first.
    pub fn before(self) -> Option<Self> {
        self.0.as_u128().checked_sub(1).map(|number| Self(Uuid::from_u128(number)))
    }

    /// The id of the task with this name, the same wherever it is made: what is added under it a second time adds
    /// nothing, as long as the first one is stored, ended or not. A task that is to be unique only until it has ended
    /// takes a [unique name](crate::Unique).
    ///
    /// It is not time-ordered, and says nothing of the queue: give the names of two queues in one store different ones
    /// if you move tasks between them.
    pub fn named(name: &str) -> Self {
        Self(Uuid::new_v5(&NAMED, name.as_bytes()))
    }

    /// The id of the task of a nominal instant.
    pub fn of_schedule(incarnation: Micros, schedule: &Key, at: Micros) -> Self {
        Self::named(&format!("schedule/{}/{}/{schedule}", incarnation.get(), at.get()))
    }
}

name! {
    /// What handles a task: 1 to 200 bytes of printable text that neither begins nor ends with white space.
    Kind, |text| check_some("kind", text, MAX_KIND)
}

name! {
    /// What tasks have in common that must not run at once, or the name of a unique task: 1 to 200 bytes of
    /// printable text that neither begins nor ends with white space.
    Key, |text| check_some("key", text, MAX_KEY)
}

name! {
    /// A word to find tasks by: 1 to 100 bytes of printable text that neither begins nor ends with white space.
    Tag, |text| check_some("tag", text, MAX_TAG)
}

impl Default for Kind {
    /// The kind of tasks that were given none: `default`.
    fn default() -> Self {
        #[allow(clippy::expect_used, reason = "the text is known")]
        Self::new("default").expect("a printable name")
    }
}

/// The fencing token of one run: it rises with every lease of the task. A write that carries another token than the
/// one in force changes nothing.
///
/// The incarnation tells one time of the store from another: a store that was rolled back to a copy gives no token out
/// twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token {
    /// When the task was leased, by the store's clock; later if that clock was stepped back.
    pub incarnation: Micros,
    /// How often the task was leased.
    pub attempt: u32,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.incarnation.get(), self.attempt)
    }
}
