//! A dump of a queue.

use std::{collections::BTreeMap, sync::Arc};

use crate::{Counted, Kind, KindRow, Schedule, Settings, State, Stored, Task, TaskId};

/// All that a store shows of a queue. Unchanged tasks may be shared with the previous dump.
#[derive(Clone, Debug, Default)]
pub struct Dump {
    /// The tasks, with the first hundred edges of each.
    pub tasks: BTreeMap<TaskId, Arc<Stored>>,
    /// The settings in force.
    pub settings: Settings,
    /// Whether leasing is paused.
    pub paused: bool,
    /// The counts that the store keeps.
    pub counts: BTreeMap<(Kind, Counted), u64>,
    /// The rows of kinds.
    pub kinds: BTreeMap<Kind, KindRow>,
    /// The schedules.
    pub schedules: Vec<Schedule>,
}

impl Dump {
    /// The rows of all tasks.
    pub fn rows(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values().map(|stored| &stored.task)
    }

    /// The row of a task.
    pub fn task(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(&id).map(|stored| &stored.task)
    }

    /// Number of leased tasks.
    pub fn running(&self) -> usize {
        self.rows().filter(|x| x.state == State::Leased).count()
    }

    pub(super) fn is_open(&self, kind: &Kind) -> bool {
        self.kinds.get(kind).is_some_and(|row| row.open)
    }
}
