//! Schedules as a queue returns them.

use std::time::SystemTime;

use interval_queue_task_contract::{Json, Key, Kind, Overlap, Schedule as Row, TaskId};

use super::{Definition, Missed, Rule, time};

/// A [schedule](crate::Schedule) as it is stored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredSchedule {
    /// The schedule's name.
    pub name: Key,
    /// Whether the schedule adds no tasks.
    pub paused: bool,
    /// How an instant is handled if the previous task has not ended.
    pub overlap: Overlap,
    /// The next instant, on the store's clock; past if no worker has polled. `None`: never again.
    /// For `after_end`: the next check of the last task.
    pub next: Option<SystemTime>,
    /// The last task of the schedule. A flow has the text of this id as its own id.
    pub last: Option<TaskId>,
    /// Why the rest cannot be read, for example because a newer version stored it. Workers of this
    /// version ignore the schedule.
    pub unread: Option<String>,
    /// Why the [payload](Self::payload) is as it is stored. `None`: the queue's
    /// [codec](crate::Codec) has decoded it, or there is none.
    pub undecoded: Option<String>,
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
            undecoded: None,
            definition,
        }
    }

    /// When tasks are added. `None`: [unread](Self::unread).
    pub fn rule(&self) -> Option<&Rule> {
        self.definition.as_ref().map(|definition| &definition.rule)
    }

    /// How missed instants are handled. `None`: [unread](Self::unread).
    pub fn missed(&self) -> Option<Missed> {
        self.definition.as_ref().map(|definition| definition.missed)
    }

    /// The kind of the tasks, of a flow that of its last task. `None`: [unread](Self::unread).
    pub fn kind(&self) -> Option<&Kind> {
        self.definition.as_ref().map(|definition| &definition.task.kind)
    }

    /// The payload of the tasks, of a flow that of its last task. `None`: [unread](Self::unread).
    pub fn payload(&self) -> Option<&Json> {
        self.definition.as_ref().map(|definition| &definition.task.payload)
    }

    /// Up to `most` next instants. Empty during a pause, and for `after_end`: its instants depend
    /// on the tasks.
    pub fn next_runs(&self, most: usize) -> Vec<SystemTime> {
        let readable = self.definition.as_ref().filter(|definition| !self.paused && !definition.follows());
        match (readable, self.next) {
            (Some(definition), Some(next)) => definition.times(super::micros(next), most),
            _ => Vec::new(),
        }
    }
}
