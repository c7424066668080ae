//! The JSON Schema of the documents, derived from their structs.

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::{
    Change, Days, Event, Failures, Flow, FlowStatus, LoggedLine, MissedEvents, NewFlow, Queue, QueueStatus,
    Recount, Schedule, Settings, TagCount, Task, Times, Transfer, Unpaced, Unreadable, Why, Workers,
};

/// The states of a task.
pub(crate) const STATES: [&str; 10] =
    ["added", "waiting", "scheduled", "blocked", "ready", "leased", "done", "failed", "cancelled", "purged"];
/// The verbs on tasks.
pub(crate) const VERBS: [&str; 10] =
    ["cancel", "retry", "release", "delay", "priority", "tag", "untag", "link", "unlink", "purge"];
/// The gates of an explanation.
pub(crate) const GATES: [&str; 20] = [
    "no_step",
    "upstreams",
    "time",
    "key",
    "key_paused",
    "kind_paused",
    "unserved",
    "lost",
    "paused",
    "limit",
    "load",
    "capacity",
    "rate_paused",
    "rate_held",
    "next",
    "leased",
    "done",
    "failed",
    "cancelled",
    "purged",
];

/// Any JSON value.
pub(crate) struct Anything;

impl JsonSchema for Anything {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "anything".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::default()
    }
}

/// Distinguishes queues without a rate limit from those with one.
pub(crate) fn without_interval(schema: &mut Schema) {
    schema.insert("not".into(), json!({ "required": ["interval_us"] }));
}

/// Distinguishes queues that cannot be read from others.
pub(crate) fn without_status(schema: &mut Schema) {
    schema.insert("not".into(), json!({ "required": ["status"] }));
}

/// The schema of `status --json` and `list --json`.
pub fn status() -> String {
    let mut generator = generator();
    let queue = of::<QueueStatus>(&mut generator);
    let unpaced = of::<Unpaced>(&mut generator);
    let unreadable = of::<Unreadable>(&mut generator);
    let listed = json!({ "type": "array", "items": { "oneOf": [queue, unpaced, unreadable] } });
    let about = "`status --json` prints one queue, `list --json` an array of queues. Times are whole microseconds, counted \
                 from the reply of the store. Later versions may add fields; no field changes its meaning.";
    document(
        generator,
        "status",
        "Output of `interval-queue status --json` and `list --json`",
        about,
        vec![queue, unpaced, listed],
    )
}

/// The schema of `tasks --json` and its commands, `add --flow --json` and `schedule list --json`.
pub fn tasks() -> String {
    let mut generator = generator();
    let g = &mut generator;
    let all = vec![
        of::<Queue>(g),
        of::<Task>(g),
        of::<Change>(g),
        of::<Flow>(g),
        of::<FlowStatus>(g),
        of::<Transfer>(g),
        of::<Recount>(g),
        of::<Why>(g),
        of::<Workers>(g),
        of::<Failures>(g),
        of::<Times>(g),
        of::<Days>(g),
        of::<Event>(g),
        of::<LoggedLine>(g),
        of::<MissedEvents>(g),
        of::<TagCount>(g),
        of::<Settings>(g),
        of::<Schedule>(g),
    ];
    let about = "`tasks --json` prints one queue, `tasks list --json` a task per line, `tasks show --json` one task, `tasks why \
                 --json` what it waits for, `tasks workers --json` the workers, `tasks failures --json` failures by error text, \
                 `tasks times --json` waiting and running times, `tasks times --by-day --json` counts by day, and the verbs a change. `tasks copy` and `move` print a transfer, \
                 `tasks recount --json` corrected counts. `tasks wait --json` prints a task per line, or the status of a flow; \
                 `add --flow --json` prints the added flow, `schedule list --json` a schedule per line. Later versions may add \
                 fields; no field changes its meaning.";
    document(
        generator,
        "tasks",
        "Output of `interval-queue tasks --json` and its commands, `add --flow --json` and `schedule list --json`",
        about,
        all,
    )
}

/// The schema of the document that `add --flow` reads.
pub fn flow() -> String {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let flow = of::<NewFlow>(&mut generator);
    let about = "Tasks that wait for each other: an object of tasks by name, or a list of tasks with names. A flow has at most \
                 20,000 tasks, a task at most 10,000 upstreams.";
    document(generator, "flow", "Input of `interval-queue add --flow`", about, vec![flow])
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().for_serialize().into_generator()
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

fn document(
    mut generator: SchemaGenerator,
    name: &str,
    title: &str,
    about: &str,
    one_of: Vec<Value>,
) -> String {
    let mut root = Map::new();
    root.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    root.insert("$id".into(), json!(format!("https://docs.rs/interval-queue-cli/{name}.schema.json")));
    root.insert("title".into(), json!(title));
    root.insert("description".into(), json!(about));
    root.insert("oneOf".into(), Value::Array(one_of));
    root.insert("$defs".into(), Value::Object(generator.take_definitions(true)));
    // A map of strings and numbers is always JSON.
    serde_json::to_string_pretty(&Value::Object(root)).unwrap_or_default() + "\n"
}
