//! Ids of tasks, workers and runs, and names.

use std::{fmt, str::FromStr};

use interval_queue_contract::{InvalidInput, Micros, name, name::check_some};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, Visitor},
};
use uuid::Uuid;

use crate::{MAX_KEY, MAX_KIND, MAX_TAG};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// The id with this UUID.
            pub const fn new(id: Uuid) -> Self {
                Self(id)
            }

            /// The lowest id.
            pub const FIRST: Self = Self(Uuid::nil());
            /// The highest id.
            pub const LAST: Self = Self(Uuid::max());

            /// Its UUID.
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                match deserializer.is_human_readable() {
                    true => Uuid::deserialize(deserializer),
                    false => deserializer.deserialize_bytes(SixteenBytes),
                }
                .map(Self)
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
                let wrong = |_| InvalidInput::new(format!("{text:?} is no {}: an example is 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d", $what));
                Uuid::try_parse(text).map(Self).map_err(wrong)
            }
        }
    };
}

id! {
    /// The id of a task: a UUID that its producer makes beforehand, so that a repeated request is
    /// recognised.
    ///
    /// Ids do not order tasks; the store keeps the order of adding.
    TaskId, "task id"
}

id! {
    /// The id of a worker: random per start of a process, so that no process keeps a dead one's
    /// tasks alive.
    WorkerId, "worker id"
}

/// Formats without a type of bytes have the id as a string.
struct SixteenBytes;

impl Visitor<'_> for SixteenBytes {
    type Value = Uuid;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the 16 bytes of an id")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Uuid, E> {
        Uuid::from_slice(bytes).map_err(|_| E::invalid_length(bytes.len(), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Uuid, E> {
        self.visit_bytes(text.as_bytes())
    }
}

const NAMESPACE: Uuid = Uuid::from_u128(0x8d1c_2a64_9b3f_5e07_a1c4_52f0_6b7e_93d8);

impl TaskId {
    /// The id before this one. `None`: it is the first.
    pub fn before(self) -> Option<Self> {
        self.0.as_u128().checked_sub(1).map(|number| Self(Uuid::from_u128(number)))
    }

    /// The id of the task with this name, equal in every process: a second task adds nothing while
    /// the first is stored, ended or not. For a task that is unique only until its end, use a
    /// [unique name](crate::Unique).
    ///
    /// The id is not time-ordered. It is equal in every queue: to move tasks between two queues of
    /// one store, use different names in each.
    pub fn named(name: &str) -> Self {
        Self(Uuid::new_v5(&NAMESPACE, name.as_bytes()))
    }

    /// The id of the task of a nominal instant.
    pub fn of_schedule(incarnation: Micros, schedule: &Key, at: Micros) -> Self {
        Self::named(&format!("schedule/{}/{}/{schedule}", incarnation.get(), at.get()))
    }
}

name! {
    /// A task's kind, which names its handler: 1 to 200 bytes of printable text without outer white
    /// space.
    Kind, |text| check_some("kind", text, MAX_KIND)
}

name! {
    /// A key or a name: 1 to 200 bytes of printable text without outer white space. At most
    /// `key_limit` tasks of one key run at once; a unique name has at most one live task.
    Key, |text| check_some("key", text, MAX_KEY)
}

name! {
    /// A word to find tasks by: 1 to 100 bytes of printable text without outer white space.
    Tag, |text| check_some("tag", text, MAX_TAG)
}

impl Default for Kind {
    fn default() -> Self {
        #[allow(clippy::expect_used, reason = "the text is known")]
        Self::new("default").expect("a printable name")
    }
}

/// The fencing token of a run, which rises with every lease of the task. A write under another
/// token changes nothing.
///
/// The incarnation distinguishes generations of the store: rolled back to a copy, it issues no
/// token twice.
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
