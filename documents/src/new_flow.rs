//! The document of a new flow: tasks that name each other.

use std::{borrow::Cow, collections::BTreeMap, fmt, time::Duration};

use interval_queue_tasks::{Flow, Json, Key, Kind, OnConflict, OnFailure, Task, TaskId, Upstream};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::json;

use crate::{duration, schema::Anything};

/// The tasks of a new flow, as `add --flow` reads them: an object of tasks by name, or a list of
/// tasks that each have a name.
///
/// ```
/// use interval_queue_documents::NewFlow;
/// use interval_queue_tasks::Flow;
///
/// let text = r#"{"fetch": {"payload": 1}, "count": {"after": "fetch", "max_attempts": 3}}"#;
/// let flow = serde_json::from_str::<NewFlow>(text)?.add_to(Flow::new());
/// # drop(flow);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug)]
pub struct NewFlow(Vec<NewTask>);

impl NewFlow {
    /// Adds the tasks to `flow`, in the order of the document.
    pub fn add_to(self, flow: Flow) -> Flow {
        self.0.into_iter().fold(flow, |flow, mut task| {
            let name = std::mem::take(&mut task.name);
            flow.task(name, task.into_task())
        })
    }
}

/// A task of a new flow.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "new_task", title = "A task of a new flow")]
#[serde(
    deny_unknown_fields,
    expecting = "a task: an object with a payload, for example {\"payload\": 1, \"after\": []}"
)]
struct NewTask {
    /// The name within the flow. In an object of tasks it is the name of the field.
    #[serde(default)]
    name: String,
    /// The kind, which selects the handler that runs the task. Default: `default`.
    #[serde(default)]
    #[schemars(with = "String")]
    kind: Kind,
    /// The payload. Default: null.
    #[serde(default)]
    #[schemars(with = "Anything")]
    payload: Json,
    /// The tasks that this task waits for.
    #[serde(default)]
    after: Edges,
    /// The priority: higher starts earlier.
    #[serde(default)]
    #[schemars(range(min = -100, max = 100))]
    priority: i32,
    /// The key, which limits how many of its tasks run at once.
    #[schemars(with = "Option<String>")]
    key: Option<Key>,
    /// Whether the tasks of the key run strictly in the order of adding, also across retries.
    #[serde(default)]
    ordered: bool,
    /// The time until the task may start, such as `90s` or `1h 30min`.
    #[serde(default, deserialize_with = "some_duration")]
    #[schemars(with = "Option<String>")]
    delay: Option<Duration>,
    /// The time within which the task must start: it fails otherwise, and is asked to stop if it
    /// still runs then.
    #[serde(default, deserialize_with = "some_duration")]
    #[schemars(with = "Option<String>")]
    deadline: Option<Duration>,
    /// The unique name: at most one task that has not ended holds it.
    #[schemars(with = "Option<String>")]
    unique: Option<Key>,
    /// The action if another task holds the unique name.
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = ["keep", "replace", "refuse"]))]
    on_conflict: OnConflict,
    /// The number of failures after which the task fails for good. Default: that of the kind or
    /// queue.
    #[schemars(range(min = 1))]
    max_attempts: Option<u32>,
    /// Intervals of the rate that a start takes, and capacity of a worker that a run takes.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    weight: u32,
    /// Tags to select the task by.
    #[serde(default)]
    tags: Vec<String>,
}

fn one() -> u32 {
    1
}

/// The upstreams of a task.
#[derive(Debug, Default)]
struct Edges(Vec<NewEdge>);

/// An upstream of a new task.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "new_edge", title = "An upstream of a new task")]
#[serde(deny_unknown_fields)]
struct NewEdge {
    /// The name of a task of the flow, or the id of a stored task.
    name: String,
    /// The name of the input that has the result of the upstream. Default: the name of the upstream.
    #[serde(default, rename = "as")]
    #[schemars(with = "Option<String>")]
    input: Option<Key>,
    /// The effect of an upstream that fails or is cancelled.
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = ["cancel", "run", "wait"]))]
    on_failure: OnFailure,
}

fn some_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| duration::parse(&text).map_err(Error::custom)).transpose()
}

impl<'de> Deserialize<'de> for NewFlow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = NewFlow;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of tasks, or an object of tasks by name")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<NewFlow, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = list.next_element::<NewTask>()? {
                    if entry.name.is_empty() {
                        let place = entries.len() + 1;
                        let text = format!(
                            "task {place} of the list has no name: give it one, as in \"name\": \"fetch\""
                        );
                        return Err(Error::custom(text));
                    }
                    entries.push(entry);
                }
                Ok(NewFlow(entries))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NewFlow, A::Error> {
                let mut entries = Vec::new();
                while let Some((name, entry)) = map.next_entry::<String, NewTask>()? {
                    if !entry.name.is_empty() && entry.name != name {
                        let text =
                            format!("task {name:?} has the name {:?}, too: leave that out", entry.name);
                        return Err(Error::custom(text));
                    }
                    entries.push(NewTask { name, ..entry });
                }
                Ok(NewFlow(entries))
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
                Ok(Edges(vec![NewEdge { name: name.into(), input: None, on_failure: OnFailure::default() }]))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Edges, A::Error> {
                NewEdge::deserialize(MapAccessDeserializer::new(map)).map(|edge| Edges(vec![edge]))
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

impl NewTask {
    fn into_task(self) -> Task {
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
        if let Some(delay) = self.delay {
            task = task.delay(delay);
        }
        if let Some(deadline) = self.deadline {
            task = task.deadline(deadline);
        }
        if let Some(name) = self.unique {
            task = task.unique(name.as_str());
        }
        if let Some(attempts) = self.max_attempts {
            task = task.max_attempts(attempts);
        }
        task = self.tags.iter().fold(task, Task::tag);
        self.after.0.into_iter().fold(task, |task, NewEdge { name, input, on_failure }| match input {
            Some(input) => task.input_or(input.as_str(), upstream(name), on_failure),
            None => task.after_or(upstream(name), on_failure),
        })
    }
}

/// A text that parses as an id is an id.
fn upstream(name: String) -> Upstream {
    name.parse::<TaskId>().map_or(Upstream::Name(name), Upstream::Id)
}

impl JsonSchema for NewFlow {
    fn schema_name() -> Cow<'static, str> {
        "new_flow".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let by_name = generator.subschema_for::<BTreeMap<String, NewTask>>();
        let list = generator.subschema_for::<Vec<NewTask>>();
        one_of("A new flow", [by_name, list])
    }
}

impl JsonSchema for Edges {
    fn schema_name() -> Cow<'static, str> {
        "new_edges".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let list = generator.subschema_for::<Vec<Edges>>();
        one_of(
            "The upstreams of a new task",
            [generator.subschema_for::<String>(), generator.subschema_for::<NewEdge>(), list],
        )
    }
}

fn one_of<const N: usize>(title: &str, schemas: [Schema; N]) -> Schema {
    let mut schema = Schema::default();
    schema.insert("title".into(), json!(title));
    schema.insert("oneOf".into(), json!(&schemas[..]));
    schema
}
