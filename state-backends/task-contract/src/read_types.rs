//! Reads of a queue.

use interval_queue_contract::{InvalidInput, Micros};

use crate::{Key, Kind, MAX_PAGE, Selector, TaskId};

/// A read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "there is one of it at a time")]
pub enum Read {
    /// The store's clock: cheap, for a caller that needs nothing else.
    Clock,
    /// The status of the queue: settings, counts, workers, next times.
    Overview,
    /// These tasks, at most [`MAX_PAGE`], with payload, result and edges.
    Tasks(Vec<TaskId>),
    /// A page of tasks by id.
    Page {
        /// The tasks.
        selector: Selector,
        /// Only tasks with a higher id.
        after: Option<TaskId>,
        /// Maximum number of tasks, 1 to [`MAX_PAGE`].
        limit: u32,
        /// Whether to return payloads and results.
        bodies: bool,
    },
    /// A page of the results of a task's upstreams, by upstream.
    Inputs {
        /// The task.
        down: TaskId,
        /// Only upstreams with a higher id.
        after: Option<TaskId>,
    },
    /// Tasks that wait for a task, or did: at most [`MAX_PAGE`], by id. A full page may have a
    /// successor.
    Downstreams {
        /// The task.
        up: TaskId,
        /// Only downstreams with a higher id.
        after: Option<TaskId>,
    },
    /// Workers that live or died within the last hour.
    Workers,
    /// All schedules.
    Schedules,
    /// How long the runs of a kind waited and took, by hour.
    Times {
        /// The kind.
        kind: Kind,
        /// Only the hour of this instant and later ones.
        from: Micros,
    },
    /// This many of the most urgent ready tasks, 1 to [`MAX_PAGE`], the most urgent first.
    Line(u32),
    /// A key's own limit: see [`Change::Key`](crate::Change::Key).
    KeyLimit(Key),
    /// Whether a task of these kinds is ready: cheap, for a worker that was notified.
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
