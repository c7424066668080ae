//! `add --flow`: tasks that name each other, from a document.

use std::{fmt, fs, io};

use interval_queue_tasks::{
    Added, AddedFlow, Flow, Json, Key, Kind, OnConflict, OnFailure, Task, TaskId, Upstream,
};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use super::{AddArgs, RETRY_TIMEOUT};
use crate::{
    duration,
    exit::{DATAERR, Failure, NOINPUT, print_as_it_is, report},
    json_output::print_json,
    target::retry,
};

pub(super) async fn add(args: &AddArgs, file: &str) -> Result<(), Failure> {
    let entries = read(file)?;
    let url = &args.target.store.url;
    let queue = retry(url, RETRY_TIMEOUT, async || args.target.created_tasks().await).await?;
    let flow = args.flow_id.clone().map_or_else(Flow::new, Flow::named);
    let flow = entries.into_iter().fold(flow, |flow, entry| {
        let name = entry.name.clone();
        flow.task(name, entry.task())
    });
    // Errors other than those of the store are errors of the document.
    let added = queue.add_flow(flow).await.map_err(|error| match Failure::from(&error) {
        failure if error.state().is_none() => Failure { code: DATAERR, ..failure },
        failure => failure,
    })?;
    print_added(args, &added)
}

fn print_added(args: &AddArgs, added: &AddedFlow) -> Result<(), Failure> {
    if args.json {
        return print_json(&interval_queue_documents::Flow::from(added));
    }
    if args.quiet {
        return Ok(());
    }
    report(&in_words(added));
    let lines: String = added.iter().map(|(name, added)| format!("{} {name}\n", added.id())).collect();
    print_as_it_is(lines.as_bytes())
}

fn in_words(added: &AddedFlow) -> String {
    let all = added.iter().count();
    let (mut new, mut again, mut kept, mut replaced) = (0, 0, 0, 0);
    for (_, added) in added.iter() {
        *match added {
            Added::New(_) => &mut new,
            Added::Again(_) => &mut again,
            Added::Kept(_) => &mut kept,
            Added::Replaced(_) => &mut replaced,
        } += 1;
    }
    let mut words = match new == all {
        true if all == 1 => format!("flow {}: 1 task", added.flow()),
        true => format!("flow {}: {all} tasks", added.flow()),
        false => format!("flow {}: {new} of {all} tasks added", added.flow()),
    };
    for (count, what) in [
        (again, "existed before"),
        (kept, "not added, since another task holds the unique name"),
        (replaced, "replaced another task"),
    ] {
        if count > 0 {
            words += &format!(", {count} {what}");
        }
    }
    words
}

fn read(file: &str) -> Result<Vec<Entry>, Failure> {
    let text = if file == "-" { io::read_to_string(io::stdin()) } else { fs::read_to_string(file) };
    let name = if file == "-" { "the standard input" } else { file };
    let text = text.map_err(|error| Failure::new(NOINPUT, format!("cannot read {name}: {error}")))?;
    let wrong = |error: serde_json::Error| Failure::new(DATAERR, format!("{name}: {error}"));
    serde_json::from_str(&text).map(|Document(entries)| entries).map_err(wrong)
}

/// A list of tasks with names, or an object of them by name.
struct Document(Vec<Entry>);

/// A task of the document.
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a task: an object with a payload, for example {\"payload\": 1, \"after\": []}"
)]
struct Entry {
    #[serde(default)]
    name: String,
    #[serde(default)]
    kind: Kind,
    #[serde(default)]
    payload: Json,
    #[serde(default)]
    after: Edges,
    #[serde(default)]
    priority: i32,
    key: Option<Key>,
    #[serde(default)]
    ordered: bool,
    delay: Option<Duration>,
    deadline: Option<Duration>,
    unique: Option<Key>,
    #[serde(default)]
    on_conflict: OnConflict,
    max_attempts: Option<u32>,
    #[serde(default = "one")]
    weight: u32,
    #[serde(default)]
    tags: Vec<String>,
}

fn one() -> u32 {
    1
}

/// The upstreams of a task: a name, an object that has one, or a list of these.
#[derive(Default)]
struct Edges(Vec<Edge>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edge {
    name: String,
    #[serde(default, rename = "as")]
    input: Option<Key>,
    #[serde(default)]
    on_failure: OnFailure,
}

/// A duration, in the syntax of the command line.
struct Duration(std::time::Duration);

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        duration::parse(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Document;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of tasks, or an object of tasks by name")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Document, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = list.next_element::<Entry>()? {
                    if entry.name.is_empty() {
                        let place = entries.len() + 1;
                        let text = format!(
                            "task {place} of the list has no name: give it one, as in \"name\": \"fetch\""
                        );
                        return Err(serde::de::Error::custom(text));
                    }
                    entries.push(entry);
                }
                Ok(Document(entries))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
                let mut entries = Vec::new();
                while let Some((name, entry)) = map.next_entry::<String, Entry>()? {
                    if !entry.name.is_empty() && entry.name != name {
                        let text =
                            format!("task {name:?} has the name {:?}, too: leave that out", entry.name);
                        return Err(serde::de::Error::custom(text));
                    }
                    entries.push(Entry { name, ..entry });
                }
                Ok(Document(entries))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl<'de> Deserialize<'de> for Edges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Edges;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a task, an object with \"name\", or a list of these")
            }

            fn visit_str<E>(self, name: &str) -> Result<Edges, E> {
                Ok(Edges(vec![Edge { name: name.into(), input: None, on_failure: OnFailure::default() }]))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Edges, A::Error> {
                Edge::deserialize(MapAccessDeserializer::new(map)).map(|edge| Edges(vec![edge]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Edges, A::Error> {
                let mut edges = Vec::new();
                while let Some(Edges(some)) = list.next_element()? {
                    edges.extend(some);
                }
                Ok(Edges(edges))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl Entry {
    fn task(self) -> Task {
        let mut task = Task::json(self.kind.as_str(), self.payload)
            .priority(self.priority)
            .weight(self.weight)
            .on_conflict(self.on_conflict);
        if let Some(key) = self.key {
            task = task.key(key.as_str());
        }
        if self.ordered {
            task = task.ordered();
        }
        if let Some(Duration(delay)) = self.delay {
            task = task.delay(delay);
        }
        if let Some(Duration(deadline)) = self.deadline {
            task = task.deadline(deadline);
        }
        if let Some(name) = self.unique {
            task = task.unique(name.as_str());
        }
        if let Some(attempts) = self.max_attempts {
            task = task.max_attempts(attempts);
        }
        task = self.tags.iter().fold(task, Task::tag);
        self.after.0.into_iter().fold(task, |task, Edge { name, input, on_failure }| match input {
            Some(input) => task.input_or(input.as_str(), upstream(name), on_failure),
            None => task.after_or(upstream(name), on_failure),
        })
    }
}

/// A text that parses as an id is an id.
fn upstream(name: String) -> Upstream {
    name.parse::<TaskId>().map_or(Upstream::Name(name), Upstream::Id)
}
