//! What may be looked at.

use interval_queue_contract::{InvalidInput, Micros};

use crate::{Key, Kind, MAX_PAGE, Selector, TaskId};

/// A look.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "there is one of it at a time")]
pub enum Read {
    /// The store's clock: cheap, for a caller that needs an instant of it and nothing else.
    Clock,
    /// Settings, counts, workers, what is next: all that tells how a queue is.
    Overview,
    /// These tasks, at most [`MAX_PAGE`], with payload, result and edges.
    Tasks(Vec<TaskId>),
    /// A page of tasks by id, with payloads and results if `bodies`.
    Page {
        /// Which.
        selector: Selector,
        /// Only those behind this one.
        after: Option<TaskId>,
        /// At most so many.
        limit: u32,
        /// Whether payloads and results are told.
        bodies: bool,
    },
    /// A page of the results of the upstreams of a task, by upstream.
    Inputs {
        /// The task.
        down: TaskId,
        /// Only those behind this upstream.
        after: Option<TaskId>,
    },
    /// A page of the tasks that wait for a task, or did: at most [`MAX_PAGE`], by id. There may be more behind a full
    /// page.
    Downstreams {
        /// The task.
        up: TaskId,
        /// Only those behind this downstream.
        after: Option<TaskId>,
    },
    /// Workers that live or died within the last hour.
    Workers,
    /// Schedules.
    Schedules,
    /// How long the runs of a kind waited and took, hour by hour.
    Times {
        /// The kind.
        kind: Kind,
        /// Only the hour of this instant and later ones.
        from: Micros,
    },
    /// The head of the line: so many of those that are ready, at most [`MAX_PAGE`], the most urgent
    /// first.
    Line(u32),
    /// The limit that a key has of its own: see [`Change::Key`](crate::Change::Key).
    KeyLimit(Key),
    /// Whether there is something ready of these kinds: cheap, for a worker that was nudged.
    Ready(Vec<Kind>),
}

impl Read {
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        let wrong = |text: String| Err(InvalidInput::new(text));
        match self {
            Self::Page { limit, .. } | Self::Line(limit) if !(1..=MAX_PAGE).contains(limit) => {
                wrong(format!("limit {limit}: give 1 to {MAX_PAGE}"))
            }
            Self::Page { selector, .. } => selector.check(),
            Self::Tasks(ids) if ids.len() > MAX_PAGE as usize => {
                wrong(format!("{} ids at once: name at most {MAX_PAGE}", ids.len()))
            }
            _ => Ok(()),
        }
    }
}
