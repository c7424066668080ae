//! All that a store shows of a queue at one instant.

use std::{collections::BTreeMap, sync::Arc};

use crate::{Counted, Kind, KindRow, Schedule, Settings, State, Stored, Task, TaskId};

/// A look at everything. What has not changed since the look before may be shared with it.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// The tasks, with the first hundred of the edges of each.
    pub tasks: BTreeMap<TaskId, Arc<Stored>>,
    /// What holds for all.
    pub settings: Settings,
    /// Whether nothing is leased.
    pub paused: bool,
    /// How many there are and ever were, as the store says.
    pub counts: BTreeMap<(Kind, Counted), u64>,
    /// What is known of kinds.
    pub kinds: BTreeMap<Kind, KindRow>,
    /// The schedules.
    pub schedules: Vec<Schedule>,
}

impl Picture {
    /// The rows of all tasks.
    pub fn rows(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values().map(|stored| &stored.task)
    }

    /// The row of a task.
    pub fn task(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(&id).map(|stored| &stored.task)
    }

    /// How many are leased.
    pub fn running(&self) -> usize {
        self.rows().filter(|x| x.state == State::Leased).count()
    }

    /// Whether tasks of this kind may hold keys.
    pub(super) fn is_open(&self, kind: &Kind) -> bool {
        self.kinds.get(kind).is_some_and(|row| row.open)
    }
}
