//! The text of a state file with many queues. A command parses and changes one of them.

use std::{collections::BTreeMap, fmt, path::Path};

use interval_queue_contract::{QueueName, Record, StateError, StateErrorKind};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor},
};
use serde_json::{ser::PrettyFormatter, value::RawValue};

/// Version of the frame; each record has its own.
const VERSION: u64 = 1;

#[derive(Debug, Serialize)]
pub(crate) struct Document<'a> {
    interval_queue: u64,
    queues: BTreeMap<QueueName, Entry<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Entry<'a> {
    /// Unparsed, possibly of a newer version: its text is kept.
    Text(&'a RawValue),
    /// Of the command's queue. Boxed, because it is large and there is only one.
    Record(Box<Record>),
}

impl<'a> Document<'a> {
    /// Includes the record of `wanted`. `None` as `bytes`: there is no file.
    pub(crate) fn parse(
        path: &Path,
        bytes: Option<&'a [u8]>,
        wanted: Option<&QueueName>,
    ) -> Result<Self, StateError> {
        let Some(bytes) = bytes else {
            return Ok(Self { interval_queue: VERSION, queues: BTreeMap::new() });
        };
        let path = path.display();
        let damaged = |what: &str| {
            let text = format!("{path} {what}: put a good copy in its place, or delete it to start over");
            StateError::new(StateErrorKind::Damaged, text)
        };
        if bytes.is_empty() {
            return Err(damaged("is empty"));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| damaged("is not text").with_source(error))?;
        // If the wanted record is invalid, `take` reports the error.
        let foreign = match Frame::parse(text, wanted).or_else(|_| Frame::parse(text, None)) {
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

    fn collect(
        queues: Vec<(QueueName, Entry<'a>)>,
        damaged: impl Fn(&str) -> StateError,
    ) -> Result<Self, StateError> {
        let mut once = BTreeMap::new();
        for (name, entry) in queues {
            if once.contains_key(&name) {
                return Err(damaged(&format!("has two records of queue {:?}", name.as_str())));
            }
            once.insert(name, entry);
        }
        Ok(Self { interval_queue: VERSION, queues: once })
    }

    pub(crate) fn names(self) -> Vec<QueueName> {
        self.queues.into_keys().collect()
    }

    pub(crate) fn take(&mut self, path: &Path, queue: &QueueName) -> Result<Option<Record>, StateError> {
        let record = match self.queues.remove(queue) {
            None => return Ok(None),
            Some(Entry::Record(record)) => record.check().map(|()| *record),
            Some(Entry::Text(text)) => Record::from_json(text.get()),
        };
        record.map(Some).map_err(|error| {
            let what = match error.kind() {
                StateErrorKind::NewerVersion => "was written by a newer version",
                _ => "cannot be used: put a good copy in its place, or remove it to start over",
            };
            let text = format!("the record of queue {:?} in {} {what}", queue.as_str(), path.display());
            StateError::new(error.kind(), text).with_source(error)
        })
    }

    pub(crate) fn put(&mut self, queue: QueueName, record: Record) {
        self.queues.insert(queue, Entry::Record(Box::new(record)));
    }

    /// Unparsed records keep their indentation.
    pub(crate) fn write_to(&self, buffer: &mut Vec<u8>) -> Result<(), StateError> {
        buffer.clear();
        let mut json = serde_json::Serializer::with_formatter(&mut *buffer, PrettyFormatter::new());
        self.serialize(&mut json).map_err(|error| {
            StateError::new(StateErrorKind::Invalid, "the record cannot be written as JSON")
                .with_source(error)
        })?;
        buffer.push(b'\n');
        Ok(())
    }
}

/// Shared by files of all versions.
#[derive(Deserialize)]
struct Version {
    interval_queue: u64,
}

struct Frame<'a> {
    interval_queue: u64,
    /// A list, so that a repeated name is noticed.
    queues: Vec<(QueueName, Entry<'a>)>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    IntervalQueue,
    Queues,
}

impl<'a> Frame<'a> {
    fn parse(text: &'a str, wanted: Option<&QueueName>) -> serde_json::Result<Self> {
        let mut json = serde_json::Deserializer::from_str(text);
        let frame = json.deserialize_map(InFrame { wanted })?;
        json.end().map(|()| frame)
    }
}

struct InFrame<'q> {
    wanted: Option<&'q QueueName>,
}

impl<'de> Visitor<'de> for InFrame<'_> {
    type Value = Frame<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the state of interval queues")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut interval_queue, mut queues) = (None, None);
        while let Some(field) = map.next_key()? {
            let again = match field {
                Field::IntervalQueue => interval_queue.replace(map.next_value()?).is_some(),
                Field::Queues => {
                    queues.replace(map.next_value_seed(InQueues { wanted: self.wanted })?).is_some()
                }
            };
            if again {
                return Err(A::Error::custom("a field comes twice"));
            }
        }
        let missing = || A::Error::custom("a field is missing");
        Ok(Frame { interval_queue: interval_queue.ok_or_else(missing)?, queues: queues.ok_or_else(missing)? })
    }
}

struct InQueues<'q> {
    wanted: Option<&'q QueueName>,
}

impl<'de> DeserializeSeed<'de> for InQueues<'_> {
    type Value = Vec<(QueueName, Entry<'de>)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for InQueues<'_> {
    type Value = Vec<(QueueName, Entry<'de>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of records by queue name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut queues = Vec::new();
        while let Some(name) = map.next_key()? {
            let entry = match self.wanted {
                Some(wanted) if *wanted == name => Entry::Record(map.next_value()?),
                _ => Entry::Text(map.next_value()?),
            };
            queues.push((name, entry));
        }
        Ok(queues)
    }
}

#[cfg(test)]
#[path = "../../tests/unit/document_unit.rs"]
mod tests;
