//! Reads of a queue.

use interval_queue_contract::{InvalidInput, Micros};
use serde::Serialize;

use crate::{Cursor, Key, Kind, MAX_PAGE, Order, Selector, TaskId};

/// A read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "there is one of it at a time")]
pub enum Read {
    /// The store's clock: a cheap read.
    Clock,
    /// Settings, counts, workers and next times.
    Overview,
    /// These tasks, at most [`MAX_PAGE`], with bodies and edges.
    Tasks(Vec<TaskId>),
    /// A page of tasks. Before the last page too, it may have fewer than its limit, even none.
    Page {
        /// The tasks.
        selector: Selector,
        /// Their order, and where the page begins: [`Order::start`] or
        /// [`Page::next`](crate::Page::next).
        after: Cursor,
        /// Maximum number of tasks, 1 to [`MAX_PAGE`].
        limit: u32,
        /// Whether to return payloads and results.
        bodies: bool,
    },
    /// A part of the number of selected tasks; see [`Tally`](crate::Tally).
    Count {
        /// The tasks.
        selector: Selector,
        /// Only later ones in the order of adding: [`Tally::next`](crate::Tally::next). `None`: all.
        after: Option<Cursor>,
    },
    /// A page of the results of a task's upstreams.
    Inputs {
        /// The task.
        down: TaskId,
        /// Only upstreams with higher ids.
        after: Option<TaskId>,
    },
    /// Tasks that wait or waited for a task, by id. If the reply has [`MAX_PAGE`], there may be
    /// more.
    Downstreams {
        /// The task.
        up: TaskId,
        /// Only downstreams with higher ids.
        after: Option<TaskId>,
    },
    /// Workers that live or died within the last hour.
    Workers,
    /// Schedules.
    Schedules,
    /// How long runs of a kind waited and took, by hour.
    Times {
        /// The kind.
        kind: Kind,
        /// Start: the hour of this instant.
        from: Micros,
    },
    /// Numbers of added and ended tasks of a kind, by day in UTC.
    Days {
        /// The kind.
        kind: Kind,
        /// Start: the day of this instant.
        from: Micros,
    },
    /// The most urgent ready tasks, 1 to [`MAX_PAGE`], in order.
    Upcoming(u32),
    /// The limit of a key by [`Change::Key`](crate::Change::Key).
    KeyLimit(Key),
    /// Whether a task of these kinds is ready and the queue is not paused: cheap, for a worker
    /// after a notification.
    Ready(Vec<Kind>),
}

impl Read {
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        let wrong = |text: String| Err(InvalidInput::new(text));
        match self {
            Self::Page { limit, .. } | Self::Upcoming(limit) if !(1..=MAX_PAGE).contains(limit) => {
                wrong(format!("limit {limit}: give 1 to {MAX_PAGE}"))
            }
            Self::Page { selector, .. } => selector.check(),
            Self::Count { selector, after } => check_oldest(selector, *after),
            Self::Tasks(ids) if ids.len() > MAX_PAGE as usize => {
                wrong(format!("{} ids at once: name at most {MAX_PAGE}", ids.len()))
            }
            _ => Ok(()),
        }
    }
}

pub(crate) fn check_oldest(selector: &Selector, after: Option<Cursor>) -> Result<(), InvalidInput> {
    selector.check()?;
    match after {
        Some(after) if after.order != Order::Oldest => Err(InvalidInput::new(format!(
            "cursor {after}: give one of the order {}",
            Order::Oldest.as_str()
        ))),
        _ => Ok(()),
    }
}
