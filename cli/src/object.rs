//! JSON objects for output. Payloads and results in them keep their text.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use interval_queue::task_contract::Json;
use serde::Serialize;
use serde_json::Value;

/// An object with sorted fields. `{}` prints it on one line, `{:#}` on several.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct Object(BTreeMap<String, Field>);

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Field {
    Value(Value),
    Text(Json),
}

impl Object {
    pub(crate) fn value(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), Field::Value(value));
    }

    /// Adds a payload or a result.
    pub(crate) fn text(&mut self, name: &str, text: &Json) {
        self.0.insert(name.to_owned(), Field::Text(text.clone()));
    }
}

impl From<serde_json::Map<String, Value>> for Object {
    fn from(fields: serde_json::Map<String, Value>) -> Self {
        Self(fields.into_iter().map(|(name, value)| (name, Field::Value(value))).collect())
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match f.alternate() {
            true => f.write_str(&serde_json::to_string_pretty(self).map_err(|_| fmt::Error)?),
            false => f.write_str(&one_line(&serde_json::to_string(self).map_err(|_| fmt::Error)?)),
        }
    }
}

/// Formats JSON on one line. A line break in JSON is always between tokens, so a space has the same
/// meaning.
pub(crate) fn one_line(json: &str) -> Cow<'_, str> {
    match json.contains(['\n', '\r']) {
        true => json.replace(['\n', '\r'], " ").into(),
        false => json.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_payload_keeps_its_text_and_a_line_is_one_line() {
        let mut object = Object::default();
        object.text("payload", &Json::new("{\"b\": 1.10,\r\n\"a\": \"\\n\"}").unwrap());
        object.value("id", json!(7));
        assert_eq!(object.to_string(), r#"{"id":7,"payload":{"b": 1.10,  "a": "\n"}}"#);
        assert_eq!(
            format!("{object:#}"),
            "{\n  \"id\": 7,\n  \"payload\": {\"b\": 1.10,\r\n\"a\": \"\\n\"}\n}"
        );
    }
}
