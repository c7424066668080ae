//! The text of a state file: many queues, of which a command parses and changes one.

use std::{borrow::Cow, collections::BTreeMap, fmt, path::Path};

use interval_queue_contract::{QueueName, Record, StateError, StateErrorKind};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The version of the file's frame that this software writes, and the newest it reads. Each record has its own.
const VERSION: u64 = 1;

/// Every queue of a file. Records that no command asks for stay the text they are, also those of a newer version.
#[derive(Debug, Serialize)]
pub(crate) struct Document<'a> {
    /// Tells such a file from any other JSON.
    interval_queue: u64,
    queues: BTreeMap<QueueName, Cow<'a, RawValue>>,
}

impl<'a> Document<'a> {
    /// The file that is not there yet.
    pub(crate) fn empty() -> Self {
        Self { interval_queue: VERSION, queues: BTreeMap::new() }
    }

    /// Reads what is stored at `path`.
    pub(crate) fn parse(path: &Path, bytes: &'a [u8]) -> Result<Self, StateError> {
        let path = path.display();
        let damaged = |what: &str| {
            let text = format!("{path} {what}: put a good copy in its place, or delete it to begin anew");
            StateError::new(StateErrorKind::Damaged, text)
        };
        if bytes.is_empty() {
            return Err(damaged("is empty"));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| damaged("is not text").with_source(error))?;
        let foreign = match serde_json::from_str::<Frame<'_>>(text) {
            Ok(frame) if frame.interval_queue == VERSION => return Self::collect(frame.queues, damaged),
            Ok(_) => None,
            Err(error) => Some(error),
        };
        if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
            return Err(damaged("is cut off or not JSON").with_source(error));
        }
        if let Ok(Version { interval_queue }) = serde_json::from_str(text)
            && interval_queue > VERSION
        {
            let text = format!(
                "{path} has version {interval_queue}, this program reads up to {VERSION}: upgrade the program"
            );
            return Err(StateError::new(StateErrorKind::NewerVersion, text));
        }
        let error = StateError::new(
            StateErrorKind::Foreign,
            format!("{path} is not a state file of an interval queue: choose another path"),
        );
        Err(match foreign {
            Some(source) => error.with_source(source),
            None => error,
        })
    }

    fn collect(queues: Queues<'a>, damaged: impl Fn(&str) -> StateError) -> Result<Self, StateError> {
        let mut document = Self::empty();
        for (name, record) in queues.0 {
            if document.queues.contains_key(&name) {
                return Err(damaged(&format!("has two records of queue {:?}", name.as_str())));
            }
            document.queues.insert(name, Cow::Borrowed(record));
        }
        Ok(document)
    }

    /// The names of the queues, sorted.
    pub(crate) fn names(self) -> Vec<QueueName> {
        self.queues.into_keys().collect()
    }

    /// The record of one queue, if it is there.
    pub(crate) fn record(&self, path: &Path, queue: &QueueName) -> Result<Option<Record>, StateError> {
        let Some(text) = self.queues.get(queue) else {
            return Ok(None);
        };
        Record::from_json(text.get()).map(Some).map_err(|error| {
            let what = match error.kind() {
                StateErrorKind::NewerVersion => "was written by a newer version",
                _ => "cannot be used: put a good copy in its place, or remove it to begin anew",
            };
            let text = format!("the record of queue {:?} in {} {what}", queue.as_str(), path.display());
            StateError::new(error.kind(), text).with_source(error)
        })
    }

    /// Puts a record in the place of the one before.
    pub(crate) fn put(&mut self, queue: &QueueName, record: &Record) -> Result<(), StateError> {
        // Carried over as it is, a record keeps the indentation of its lines; a new one is given that of its depth.
        // JSON text has no line breaks inside of strings.
        let text = record.to_json()?.replace('\n', "\n    ");
        let raw = RawValue::from_string(text).map_err(unwritable)?;
        self.queues.insert(queue.clone(), Cow::Owned(raw));
        Ok(())
    }

    /// The whole text, pretty-printed.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, StateError> {
        let mut bytes = serde_json::to_vec_pretty(self).map_err(unwritable)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

fn unwritable(error: serde_json::Error) -> StateError {
    StateError::new(StateErrorKind::Invalid, "the record cannot be written as JSON").with_source(error)
}

/// The file as it is read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame<'a> {
    interval_queue: u64,
    #[serde(borrow)]
    queues: Queues<'a>,
}

/// As much as a file of any version has.
#[derive(Deserialize)]
struct Version {
    interval_queue: u64,
}

/// The queues one by one, so that a name that comes twice is noticed.
struct Queues<'a>(Vec<(QueueName, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Queues<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ByName;
        impl<'de> Visitor<'de> for ByName {
            type Value = Vec<(QueueName, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of records by queue name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut queues = Vec::new();
                while let Some(queue) = map.next_entry()? {
                    queues.push(queue);
                }
                Ok(queues)
            }
        }
        deserializer.deserialize_map(ByName).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use interval_queue_contract::{Micros, Settings, Ticket};

    use super::*;

    fn kind(text: impl AsRef<[u8]>) -> StateErrorKind {
        Document::parse(Path::new("/x/state.json"), text.as_ref()).unwrap_err().kind()
    }

    fn name(name: &str) -> QueueName {
        QueueName::new(name).unwrap()
    }

    fn record(ticket: u64) -> Record {
        let settings = Settings { interval: Micros::new(250_000), max_running: None };
        Record { ticket: Ticket::new(ticket), ..Record::new(settings) }
    }

    #[test]
    fn what_is_not_a_state_file_is_told_apart() {
        use StateErrorKind::{Damaged, Foreign, NewerVersion};
        let whole = r#"{"interval_queue": 1, "queues": {"mail": {}}}"#;
        assert!(Document::parse(Path::new("x"), whole.as_bytes()).is_ok());
        for length in 0..whole.len() {
            assert_eq!(kind(&whole[..length]), Damaged, "{:?}", &whole[..length]);
        }
        assert_eq!(kind(b"\xff\xfe"), Damaged);
        assert_eq!(kind("  \n"), Damaged);
        assert_eq!(kind(format!("{whole}}}")), Damaged);
        assert_eq!(kind("[1, 2"), Damaged);
        assert_eq!(kind(r#"{"interval_queue": 1, "queues": {"a": {}, "a": {}}}"#), Damaged);
        assert_eq!(kind("{}"), Foreign);
        assert_eq!(kind("[]"), Foreign);
        assert_eq!(kind("7"), Foreign);
        assert_eq!(kind(r#"{"version": 1, "queues": {}}"#), Foreign);
        assert_eq!(kind(r#"{"interval_queue": 0, "queues": {}}"#), Foreign);
        assert_eq!(kind(r#"{"interval_queue": 1, "queues": []}"#), Foreign);
        assert_eq!(kind(r#"{"interval_queue": 1, "queues": {}, "colour": "red"}"#), Foreign);
        assert_eq!(kind(r#"{"interval_queue": 1, "queues": {" mail": {}}}"#), Foreign);
        assert_eq!(kind(r#"{"interval_queue": 2, "queues": {}}"#), NewerVersion);
        assert_eq!(kind(r#"{"interval_queue": 2, "lanes": []}"#), NewerVersion);
    }

    #[test]
    fn the_records_of_other_queues_are_carried_over_as_they_are() {
        let odd = r#"{"version": 99,   "of": [ "a newer", "program" ]}"#;
        let text = format!(r#"{{"interval_queue": 1, "queues": {{"b": {odd}, "a": {{ }} }}}}"#);
        let mut document = Document::parse(Path::new("x"), text.as_bytes()).unwrap();
        assert_eq!(
            document.record(Path::new("x"), &name("b")).unwrap_err().kind(),
            StateErrorKind::NewerVersion
        );
        assert_eq!(document.record(Path::new("x"), &name("a")).unwrap_err().kind(), StateErrorKind::Foreign);
        assert_eq!(document.record(Path::new("x"), &name("c")).unwrap(), None);
        document.put(&name("c"), &record(1)).unwrap();
        let written = String::from_utf8(document.to_bytes().unwrap()).unwrap();
        assert!(written.contains(odd), "{written}");
        assert!(written.contains("\"a\": { }"), "{written}");
        assert_eq!(document.names(), [name("a"), name("b"), name("c")]);
    }

    #[test]
    fn the_text_stays_pretty_however_often_it_is_written() {
        let mut bytes = Document::empty().to_bytes().unwrap();
        for round in 0..3_000 {
            let mut document = Document::parse(Path::new("x"), &bytes).unwrap();
            let queue = name(["mail", "crawl", "odd"][round % 3]);
            document.put(&queue, &record(9)).unwrap();
            bytes = document.to_bytes().unwrap();
        }
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let queues = |name: &str| value["queues"][name]["ticket"].as_u64();
        assert_eq!([queues("mail"), queues("crawl"), queues("odd")], [Some(9); 3]);
        let text = String::from_utf8(bytes).unwrap();
        let expected = record(9).to_json().unwrap().replace('\n', "\n    ");
        let expected = format!(
            "{{\n  \"interval_queue\": 1,\n  \"queues\": {{\n    \"crawl\": {expected},\n    \"mail\": {expected},\n    \
             \"odd\": {expected}\n  }}\n}}\n"
        );
        assert_eq!(text, expected);
    }
}
