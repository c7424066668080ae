//! Pending changes to the files of one queue within a transaction. Each task has one file, so the
//! changes of several commands are merged into one.

use std::collections::{HashMap, HashSet, hash_map};

use interval_queue_contract::QueueName;
use interval_queue_task_contract::{Json, LogLine, State, Task, TaskId, Token};

use super::{leased_files::LeasedFile, names, redo_entry::RedoEntry};

#[derive(Clone, Debug, Default)]
pub(super) struct PendingFile {
    /// Number of the task's row.
    pub(super) number: i64,
    /// The current path. `None`: the file does not exist.
    pub(super) origin: Option<String>,
    /// The task as it will be. `None`: unchanged or removed.
    pub(super) task: Option<Task>,
    pub(super) is_removed: bool,
    /// The last command that changed the file.
    command: u64,
    /// Whether the text changes, not only the path.
    pub(super) is_rewritten: bool,
    /// Differs from the payload in the file at `origin`.
    pub(super) payload: Option<Json>,
    pub(super) result: Option<Option<Json>>,
    pub(super) log: Option<Vec<LogLine>>,
    /// Whether the upstreams differ from those in the file.
    pub(super) are_upstreams_changed: bool,
}

#[derive(Debug)]
pub(super) struct PendingFiles {
    pub(super) queue: QueueName,
    pub(super) folder: String,
    entries: HashMap<TaskId, PendingFile>,
    /// Entries in the order of their first changes, in which files are written.
    order: Vec<TaskId>,
    /// Number of the command within the transaction.
    command: u64,
    /// Entries as before the current command.
    before: Vec<(TaskId, Option<PendingFile>)>,
    /// Tasks whose upstreams are yet to be inserted.
    pub(super) new_downstreams: HashSet<TaskId>,
    /// States of tasks that were read and not changed.
    seen: HashMap<TaskId, State>,
    /// Files that were read for leases.
    pub(super) read: HashMap<TaskId, LeasedFile>,
    /// Paths of files that are not where the index expects them.
    pub(super) moved: HashMap<TaskId, String>,
    pub(super) missing: HashSet<TaskId>,
    pub(super) redo: Vec<RedoEntry>,
    /// Whether `queue.json` must be written.
    pub(super) is_changed: bool,
    pub(super) notification: Option<i64>,
}

impl PendingFiles {
    pub(super) fn new(queue: &QueueName) -> Self {
        Self {
            folder: names::folder(queue),
            queue: queue.clone(),
            entries: HashMap::new(),
            order: Vec::new(),
            command: 0,
            before: Vec::new(),
            new_downstreams: HashSet::new(),
            seen: HashMap::new(),
            read: HashMap::new(),
            moved: HashMap::new(),
            missing: HashSet::new(),
            redo: Vec::new(),
            is_changed: false,
            notification: None,
        }
    }

    /// The state of an unchanged task gives the path of its file.
    pub(super) fn note_seen(&mut self, task: &Task) {
        if !self.entries.contains_key(&task.id) {
            self.seen.insert(task.id, task.state);
        }
    }

    /// `None`: the task was not read.
    pub(super) fn seen(&self, id: TaskId) -> Option<State> {
        self.seen.get(&id).copied()
    }

    pub(super) fn get(&self, id: TaskId) -> Option<&PendingFile> {
        self.entries.get(&id)
    }

    /// For a task to be changed, which was in `state`. `None`: a new task.
    pub(super) fn entry(&mut self, id: TaskId, number: i64, state: Option<State>) -> &mut PendingFile {
        let Self { entries, order, command, before, moved, missing, folder, .. } = self;
        let entry = match entries.entry(id) {
            hash_map::Entry::Occupied(occupied) => {
                let entry = occupied.into_mut();
                if entry.command != *command {
                    before.push((id, Some(entry.clone())));
                }
                entry
            }
            hash_map::Entry::Vacant(vacant) => {
                order.push(id);
                before.push((id, None));
                let usual = || state.and_then(|state| names::path(folder, state, number, id));
                let origin =
                    if missing.contains(&id) { None } else { moved.get(&id).cloned().or_else(usual) };
                vacant.insert(PendingFile { number, origin, ..PendingFile::default() })
            }
        };
        entry.command = *command;
        entry
    }

    pub(super) fn path(&self, id: TaskId, number: i64, state: State) -> Option<String> {
        match self.entries.get(&id) {
            Some(entry) => entry.origin.clone(),
            None if self.missing.contains(&id) => None,
            None => self.moved.get(&id).cloned().or_else(|| names::path(&self.folder, state, number, id)),
        }
    }

    pub(super) fn commit_command(&mut self) {
        self.command += 1;
        self.before.clear();
        self.new_downstreams.clear();
    }

    pub(super) fn undo_command(&mut self) {
        self.command += 1;
        for (id, before) in std::mem::take(&mut self.before).into_iter().rev() {
            match before {
                Some(before) => _ = self.entries.insert(id, before),
                None => {
                    self.entries.remove(&id);
                    // Entries are undone last first.
                    self.order.pop();
                }
            }
        }
        self.new_downstreams.clear();
    }

    /// Changed by the current command without setting the row of their entry.
    pub(super) fn unread(&self) -> Vec<TaskId> {
        let is_unknown =
            |id: &TaskId| self.entries.get(id).is_some_and(|entry| entry.task.is_none() && !entry.is_removed);
        self.before.iter().map(|(id, _)| *id).filter(is_unknown).collect()
    }

    /// Takes the files that were read for tasks that are leased now.
    pub(super) fn leased(&mut self) -> impl Iterator<Item = (TaskId, Token, LeasedFile)> {
        let Self { read, entries, .. } = self;
        read.drain().filter_map(|(id, read)| {
            let entry = entries.get(&id)?;
            let task = entry.task.as_ref()?;
            (task.state == State::Leased && !entry.is_rewritten).then_some((id, task.token, read))
        })
    }

    /// Entries in the order of their first change.
    pub(super) fn entries(&self) -> impl Iterator<Item = (TaskId, &PendingFile)> {
        self.order.iter().filter_map(|id| Some((*id, self.entries.get(id)?)))
    }
}

/// State, worker and held key do not show in the text of a file.
pub(super) fn changes_text(before: &Task, after: &Task) -> bool {
    let is_same = before.kind == after.kind
        && before.priority == after.priority
        && before.key == after.key
        && before.ordered == after.ordered
        && before.unique == after.unique
        && before.weight == after.weight
        && before.tags == after.tags
        && before.added == after.added
        && before.deadline == after.deadline
        && before.not_before == after.not_before
        && before.policy == after.policy
        && before.schedule == after.schedule
        && before.failures == after.failures
        && before.retries == after.retries
        && before.returns == after.returns
        && before.generation == after.generation
        && before.ended == after.ended
        && before.error == after.error
        && before.history.len() == after.history.len()
        && before.history.last() == after.history.last();
    !is_same
}
