//! How a stored schedule is seen.

use std::time::SystemTime;

use interval_queue_task_contract::{Json, Key, Kind, Overlap, Schedule as Row, TaskId};

use super::{Definition, Missed, Rule, time};

/// A [schedule](crate::Schedule) as it is stored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredSchedule {
    /// Its name.
    pub name: Key,
    /// Whether it makes nothing.
    pub paused: bool,
    /// What happens at an instant that comes while the task before has not ended.
    pub overlap: Overlap,
    /// The next instant, by the store's clock; in the past if no worker was there; none: never again. Of one that waits
    /// for the end of its task: when it is looked at again.
    pub next: Option<SystemTime>,
    /// The task that it made last.
    pub last: Option<TaskId>,
    /// Why the rest cannot be read: a newer version has stored it, say. Workers of this version leave it alone.
    pub unread: Option<String>,
    pub(super) definition: Option<Definition>,
}

impl StoredSchedule {
    pub(super) fn of(row: &Row) -> Self {
        let (definition, unread) = match Definition::read(row) {
            Ok(definition) => (Some(definition), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self {
            name: row.name.clone(),
            paused: row.paused,
            overlap: row.overlap,
            next: row.next.map(time),
            last: row.last,
            unread,
            definition,
        }
    }

    /// When it makes tasks; none: it cannot be [read](Self::unread).
    pub fn rule(&self) -> Option<&Rule> {
        self.definition.as_ref().map(|definition| &definition.rule)
    }

    /// What becomes of missed instants.
    pub fn missed(&self) -> Option<Missed> {
        self.definition.as_ref().map(|definition| definition.missed)
    }

    /// What handles its tasks.
    pub fn kind(&self) -> Option<&Kind> {
        self.definition.as_ref().map(|definition| &definition.task.kind)
    }

    /// What their handler is given.
    pub fn payload(&self) -> Option<&Json> {
        self.definition.as_ref().map(|definition| &definition.task.payload)
    }

    /// Its next instants, at most so many; none while it is paused. Of one that waits for the end of its task nobody
    /// knows them.
    pub fn next_runs(&self, most: usize) -> Vec<SystemTime> {
        let readable = self.definition.as_ref().filter(|definition| !self.paused && !definition.follows());
        match (readable, self.next) {
            (Some(definition), Some(next)) => definition.times(super::micros(next), most),
            _ => Vec::new(),
        }
    }
}
