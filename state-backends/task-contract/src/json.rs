//! A JSON value as text, which the rules never read.

use std::fmt;

use interval_queue_contract::InvalidInput;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

const WHITE_SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// The text of one JSON value, a payload or a result. Validated and never rewritten: digits, order
/// of keys, repeated keys and inner white space stay; outer white space is removed.
///
/// Serialises as the value in JSON, as a string in binary formats. A `serde_json::Value` would
/// round numbers and sort keys.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Box<str>);

impl Json {
    /// Checks that the text is one JSON value that a handler can read: at most 127 nested arrays
    /// and objects, numbers within `f64`, no half of a surrogate pair.
    ///
    /// # Errors
    ///
    /// It is not. The error shows its beginning, and line and column of the fault.
    pub fn new(text: impl Into<Box<str>>) -> Result<Self, InvalidInput> {
        let text = text.into();
        match serde_json::from_str::<Readable>(&text) {
            Ok(_) => match text.trim_matches(WHITE_SPACE) {
                value if value.len() == text.len() => Ok(Self(text)),
                value => Ok(Self(value.into())),
            },
            Err(error) => {
                let shown: String = text.chars().take(40).collect();
                let more = if shown.len() < text.len() { "…" } else { "" };
                let shown = shown.replace(char::is_control, " ");
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
    /// JSON cannot hold it: for example a map whose keys are no text.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Result<Self, InvalidInput> {
        let text = serde_json::to_string(value)
            .map_err(|error| InvalidInput::new(format!("no JSON can be made of it: {error}")))?;
        Ok(Self(text.into()))
    }

    /// Text from a store, checked when it was added.
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

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_str(&self.0);
        }
        let value: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match deserializer.is_human_readable() {
            true => Box::<str>::from(Box::<RawValue>::deserialize(deserializer)?),
            false => Box::<str>::deserialize(deserializer)?,
        };
        Self::new(text).map_err(serde::de::Error::custom)
    }
}

/// A value read to its end and discarded, as a handler reads it; the parser hardly checks ignored
/// values.
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
    use serde::{
        de::value::{Error, StrDeserializer},
        forward_to_deserialize_any,
    };

    use super::*;

    const EXACT: [&str; 9] = [
        "18446744073709551616",
        "123456.789012345678901234567890",
        "1.10",
        "-0",
        "1E+2",
        "{\"b\":1,\"a\":2,\"b\":3}",
        "[ 1 ,\n\t2 ]",
        "\"\\u00e9\\/\\u0000\"",
        "\"\u{e9}\"",
    ];

    #[test]
    fn text_is_kept_but_for_white_space_around_it() {
        for text in EXACT {
            let json = Json::new(format!(" \r\n\t{text}\n")).unwrap();
            assert_eq!(json.as_str(), text);
            let within = serde_json::to_string(&[&json]).unwrap();
            assert_eq!(within, format!("[{text}]"));
            assert_eq!(serde_json::from_str::<[Json; 1]>(&within).unwrap(), [json]);
        }
    }

    struct Binary(&'static str);

    impl<'de> Deserializer<'de> for Binary {
        type Error = Error;

        fn is_human_readable(&self) -> bool {
            false
        }

        fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            StrDeserializer::new(self.0).deserialize_any(visitor)
        }

        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
        }
    }

    #[test]
    fn binary_formats_have_it_as_a_string() {
        for text in EXACT {
            assert_eq!(Json::deserialize(Binary(text)).unwrap().as_str(), text);
        }
        assert!(Json::deserialize(Binary("text")).is_err());
    }

    #[test]
    fn a_mebibyte_of_digits_or_brackets_is_judged_at_once() {
        let digits = "1".repeat(1 << 20);
        let error = Json::new(&*digits).unwrap_err().to_string();
        assert!(error.contains("number out of range at line 1 column 1048576"), "{error}");
        assert_eq!(Json::new(format!("0.{digits}")).unwrap().as_str().len(), (1 << 20) + 2);
        let error = Json::new("[{\"a\":".repeat(1 << 18)).unwrap_err().to_string();
        assert!(error.contains("recursion limit exceeded at line 1 column"), "{error}");
        let deep = Json::stored("[".repeat(1 << 20) + &"]".repeat(1 << 20));
        assert_eq!(serde_json::to_string(&deep).unwrap().len(), 2 << 20);
    }

    #[test]
    fn json_that_no_handler_can_read_is_rejected() {
        let deep = |levels| "[".repeat(levels) + &"]".repeat(levels);
        for good in
            ["1", "{\"a\": [null, true, -1.5e3, \"\\ud83d\\ude00\"]}", "18446744073709551616", &deep(127)]
        {
            assert_eq!(Json::new(good).unwrap().as_str(), good);
            serde_json::from_str::<serde_json::Value>(good).unwrap();
        }
        for bad in ["1e999", "[\"\\ud800\"]", "{\"\\udc00\": 1}", &deep(128), "text", "1 2", "", "{\n\"a\":}"]
        {
            let error = Json::new(bad).unwrap_err().to_string();
            assert!(error.contains("no JSON") && error.contains(" at line "), "{error}");
            assert!(!error.contains('\n'), "{error}");
            let task = format!("{{\"id\": \"01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d\", \"payload\": {bad}}}");
            assert!(serde_json::from_str::<crate::NewTask>(&task).is_err(), "{bad}");
        }
    }
}
