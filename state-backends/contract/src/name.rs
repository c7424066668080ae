//! Names of queues and shards, and labels of shards.

use crate::{InvalidInput, MAX_LABEL, MAX_NAME};

/// Checks for printable text of at most `longest` bytes without white space at its ends.
#[doc(hidden)]
pub fn check(what: &str, text: &str, longest: usize) -> Result<(), InvalidInput> {
    let wrong = if text.len() > longest {
        format!("{what} of {} bytes is too long: at most {longest}", text.len())
    } else if text.chars().any(char::is_control) {
        format!("{what} {text:?} has a control character: use printable text")
    } else if text.trim() != text {
        format!("{what} {text:?} begins or ends with white space: use {:?}", text.trim())
    } else {
        return Ok(());
    };
    Err(InvalidInput::new(wrong))
}

/// As [`check`], and not empty.
#[doc(hidden)]
pub fn check_some(what: &str, text: &str, longest: usize) -> Result<(), InvalidInput> {
    if text.is_empty() {
        return Err(InvalidInput::new(format!("{what} \"\" is empty: give it 1 to {longest} bytes")));
    }
    check(what, text, longest)
}

/// A text type that is checked when made and when parsed, only for the contracts of interval-queue.
#[doc(hidden)]
#[macro_export]
macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks the text.
            ///
            /// # Errors
            ///
            /// Names the text and the rule that it breaks.
            pub fn new(text: impl Into<String>) -> Result<Self, $crate::InvalidInput> {
                let text = text.into();
                let check: fn(&str) -> Result<(), $crate::InvalidInput> = $check;
                check(&text)?;
                Ok(Self(text))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::InvalidInput;
            fn try_from(text: String) -> Result<Self, $crate::InvalidInput> {
                Self::new(text)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::InvalidInput;
            fn from_str(text: &str) -> Result<Self, $crate::InvalidInput> {
                Self::new(text)
            }
        }
    };
}

name! {
    /// A queue's name: 1 to 200 bytes of printable text without white space at its ends.
    QueueName, |text| check_some("queue name", text, MAX_NAME)
}

name! {
    /// A shard's id: 1 to 128 bytes of printable text. Random, so that it is never reused.
    ShardId, |text| check_some("shard id", text, MAX_LABEL)
}

name! {
    #[derive(Default)]
    /// A shard's label for people, for example `host:pid`: up to 128 bytes of printable text.
    Label, |text| check("label", text, MAX_LABEL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_name_that_cannot_be_used_is_named_in_the_error() {
        for (name, says) in [
            ("", "is empty"),
            (" mail", "white space"),
            ("mail\n", "control character"),
            ("a\u{0}b", "control character"),
            (&"x".repeat(201), "201 bytes is too long: at most 200"),
        ] {
            let error = QueueName::new(name).unwrap_err().to_string();
            assert!(error.contains(says), "{name:?}: {error}");
        }
    }

    #[test]
    fn any_printable_name_will_do() {
        for name in ["mail", "Straße 7", "{a}:b/c?d", "日本語", &"x".repeat(200)] {
            assert_eq!(QueueName::new(name).unwrap().as_str(), name);
        }
        assert_eq!(Label::new("").unwrap(), Label::default());
    }
}
