//! A JSON value as text, which the rules never look into.

use std::fmt;

use interval_queue_contract::InvalidInput;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::IgnoredAny};
use serde_json::value::RawValue;

/// The text of one JSON value: a payload or a result. Kept as it was given, byte by byte.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Box<str>);

impl Json {
    /// Checks that the text is one JSON value.
    ///
    /// # Errors
    ///
    /// It is not; the error shows its beginning and says where it goes wrong.
    pub fn new(text: impl Into<Box<str>>) -> Result<Self, InvalidInput> {
        let text = text.into();
        match serde_json::from_str::<IgnoredAny>(&text) {
            Ok(_) => Ok(Self(text)),
            Err(error) => {
                let shown: String = text.chars().take(40).collect();
                let more = if shown.len() < text.len() { "…" } else { "" };
                Err(InvalidInput::new(format!(
                    "{shown}{more} is no JSON ({error}): text needs quotes, as in \"text\""
                )))
            }
        }
    }

    /// The value as JSON.
    ///
    /// # Errors
    ///
    /// It cannot be told in JSON, such as a map whose keys are no text.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Result<Self, InvalidInput> {
        let text = serde_json::to_string(value)
            .map_err(|error| InvalidInput::new(format!("no JSON can be made of it: {error}")))?;
        Ok(Self(text.into()))
    }

    /// What a store kept, which was checked when it came in.
    #[doc(hidden)]
    pub fn stored(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Json {
    /// `null`.
    fn default() -> Self {
        Self("null".into())
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// As the value itself, not as a text with quotes.
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(String::from(Box::<str>::from(value)).into()))
    }
}
