//! Effects of commands on tasks.

use interval_queue_tasks::{
    Recounted, TaskId, Transferred,
    contract::{self, Tag},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::schema;

/// The effect of a verb: `tasks cancel --json` and the other verbs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "change", title = "A change")]
pub struct Change {
    /// Cancelled tasks that run. They are cancelled when their runs end.
    pub asked_to_stop: Vec<String>,
    /// Number of changed tasks.
    pub count: u64,
    /// Whether nothing was changed, only reported.
    pub dry_run: bool,
    /// Ids of the changed tasks.
    pub ids: Vec<String>,
    /// Selected tasks that stay unchanged: live tasks need them, they have as many tags or
    /// upstreams as allowed, or they would wait for themselves.
    pub kept: Vec<String>,
    /// Tasks not retried, since another task holds their unique name.
    pub taken: Vec<Taken>,
    /// The verb.
    #[schemars(extend("enum" = schema::VERBS))]
    pub verb: &'static str,
}

/// A task, and the other one that holds its unique name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "taken", title = "A unique name that is taken")]
pub struct Taken {
    /// The holder of the name.
    #[schemars(extend("format" = "uuid"))]
    pub holder: String,
    /// The task.
    #[schemars(extend("format" = "uuid"))]
    pub id: String,
}

impl Taken {
    /// The document of each pair of task and holder.
    pub fn all(pairs: &[(TaskId, TaskId)]) -> Vec<Self> {
        let one = |(id, holder): &(TaskId, TaskId)| Self { holder: holder.to_string(), id: id.to_string() };
        pairs.iter().map(one).collect()
    }
}

/// Tasks transferred to another queue: `tasks copy --json` and `tasks move --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "transfer", title = "A copy or a move")]
pub struct Transfer {
    /// Tasks that existed at the destination.
    pub again: u64,
    /// Tasks not transferred, since they wait for tasks that were not selected and have not ended.
    pub kept: Vec<String>,
    /// Tasks new at the destination, with upstreams that were copied for them.
    pub new: u64,
    /// Tasks not transferred, since tasks at the destination hold their unique names.
    pub taken: Vec<Taken>,
    /// The destination: queue and store.
    pub to: String,
}

impl Transfer {
    /// A transfer to this destination.
    pub fn of(to: String, transferred: &Transferred) -> Self {
        Self {
            again: transferred.again,
            kept: transferred.kept.iter().map(ToString::to_string).collect(),
            new: transferred.new,
            taken: Taken::all(&transferred.taken),
            to,
        }
    }
}

/// Wrong counts: `tasks recount --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "recount", title = "A recount")]
pub struct Recount {
    /// Counts that were wrong and are corrected.
    pub corrected: Vec<Corrected>,
    /// Index entries of removed tasks that were removed.
    pub dropped: u64,
}

impl From<&Recounted> for Recount {
    fn from(recounted: &Recounted) -> Self {
        let corrected = recounted.corrected.iter().map(Corrected::of).collect();
        Self { corrected, dropped: recounted.dropped }
    }
}

/// A corrected number of tasks of a kind in a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "corrected", title = "A corrected count")]
pub struct Corrected {
    /// The wrong number; can be negative.
    pub before: i64,
    /// The number of stored tasks.
    pub counted: u64,
    /// The kind.
    pub kind: String,
    /// The state.
    #[schemars(extend("enum" = schema::STATES))]
    pub state: &'static str,
}

impl Corrected {
    fn of(one: &contract::Corrected) -> Self {
        let (kind, state) = (one.kind.to_string(), one.state.as_str());
        Self { before: one.before, counted: one.counted, kind, state }
    }
}

/// A tag: `tasks tags --json` prints one per line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "tag_count", title = "A tag")]
pub struct TagCount {
    /// Selected tasks that have it.
    pub count: u64,
    /// The tag.
    pub tag: String,
}

impl TagCount {
    /// A tag with its count.
    pub fn of(tag: &Tag, count: u64) -> Self {
        Self { count, tag: tag.to_string() }
    }
}
