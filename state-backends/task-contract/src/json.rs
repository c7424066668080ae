//! A JSON value as text, which the rules never look into.

use std::fmt;

use interval_queue_contract::InvalidInput;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// The text of one JSON value: a payload or a result. Kept as it was given, byte by byte.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Box<str>);

impl Json {
    /// Checks that the text is one JSON value, and one that a handler can read: arrays and objects within one another
    /// not deeper than 127, numbers that are finite, no half of a surrogate pair.
    ///
    /// # Errors
    ///
    /// It is not; the error shows its beginning and says where it goes wrong.
    pub fn new(text: impl Into<Box<str>>) -> Result<Self, InvalidInput> {
        let text = text.into();
        match serde_json::from_str::<Readable>(&text) {
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
        Self::new(Box::<str>::from(value)).map_err(serde::de::Error::custom)
    }
}

/// A value that was read to its end and is not kept. What the parser skips it hardly looks at; this is read as a
/// handler reads it.
struct Readable;

impl<'de> Deserialize<'de> for Readable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Readable {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self, A::Error> {
        while all.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Self, A::Error> {
        while all.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_handler_can_read_is_refused() {
        let deep = |levels| "[".repeat(levels) + &"]".repeat(levels);
        for good in
            ["1", " {\"a\": [null, true, -1.5e3, \"\\ud83d\\ude00\"]} ", "18446744073709551616", &deep(127)]
        {
            assert_eq!(Json::new(good).unwrap().as_str(), good);
            serde_json::from_str::<serde_json::Value>(good).unwrap();
        }
        for bad in ["1e999", "[\"\\ud800\"]", "{\"\\udc00\": 1}", &deep(128), "text", "1 2", ""] {
            assert!(Json::new(bad).unwrap_err().to_string().contains("no JSON"), "{bad}");
            let task = format!("{{\"id\": \"01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d\", \"payload\": {bad}}}");
            assert!(serde_json::from_str::<crate::NewTask>(&task).is_err(), "{bad}");
        }
    }
}
