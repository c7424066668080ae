//! JSON for output, in which payloads and results keep their text.

use std::borrow::Cow;

use serde::Serialize;

use crate::exit::{Failure, print};

/// Prints several lines.
pub(crate) fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    // Documents have text, numbers and lists only, so this never fails.
    print(&serde_json::to_string_pretty(document).unwrap_or_default())
}

/// The line has its newline.
pub(crate) fn json_line(document: &impl Serialize) -> String {
    let json = serde_json::to_string(document).unwrap_or_default();
    format!("{}\n", one_line(&json))
}

/// A line break in JSON is always between tokens, so a space has the same meaning.
pub(crate) fn one_line(json: &str) -> Cow<'_, str> {
    match json.contains(['\n', '\r']) {
        true => json.replace(['\n', '\r'], " ").into(),
        false => json.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use interval_queue_tasks::Json;

    use super::*;

    #[test]
    fn a_payload_keeps_its_text_on_one_line() {
        let payload = Json::new("{\"b\": 1.10,\r\n\"a\": \"\\n\"}").unwrap();
        let line = json_line(&BTreeMap::from([("payload", payload)]));
        assert_eq!(line, "{\"payload\":{\"b\": 1.10,  \"a\": \"\\n\"}}\n");
    }
}
