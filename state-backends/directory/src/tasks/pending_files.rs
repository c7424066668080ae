//! What becomes of the files of one queue within one transaction: each task has one file, so that what several commands
//! do with it is one change of it.

use std::collections::{HashMap, HashSet, hash_map};

use interval_queue_contract::QueueName;
use interval_queue_task_contract::{Json, State, Task, TaskId, Token};

use super::{leased_files::LeasedFile, names, redo_entry::RedoEntry};

/// The file of a task.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingFile {
    /// That of its row.
    pub(super) number: i64,
    /// Where it is; none: it is not there yet, or any more.
    pub(super) origin: Option<String>,
    /// The task as it is to be; none: it is as it was, or goes.
    pub(super) task: Option<Task>,
    pub(super) is_removed: bool,
    /// The command that has changed it last.
    command: u64,
    /// Whether its text changes, and not its place alone.
    pub(super) is_rewritten: bool,
    /// What a person has written, if that is not what lies at `origin`.
    pub(super) payload: Option<Json>,
    pub(super) result: Option<Option<Json>>,
    /// Whether it waits for others than its file says.
    pub(super) are_upstreams_changed: bool,
}

/// The files of one queue.
#[derive(Debug)]
pub(super) struct PendingFiles {
    pub(super) queue: QueueName,
    pub(super) folder: String,
    entries: HashMap<TaskId, PendingFile>,
    /// In the order in which they came, so that files are written in it.
    order: Vec<TaskId>,
    /// How many commands were carried out.
    command: u64,
    /// The entries as they were before the command that is under way.
    before: Vec<(TaskId, Option<PendingFile>)>,
    /// Tasks that are yet to be inserted, and wait for others.
    pub(super) new_downstreams: HashSet<TaskId>,
    /// States of tasks that were looked at and not changed.
    seen: HashMap<TaskId, State>,
    /// Files that were read for leases.
    pub(super) read: HashMap<TaskId, LeasedFile>,
    /// Files that are not where the index has them.
    pub(super) moved: HashMap<TaskId, String>,
    /// Tasks without a file.
    pub(super) missing: HashSet<TaskId>,
    /// What is done beside.
    pub(super) redo: Vec<RedoEntry>,
    /// Whether `queue.json` is to be written.
    pub(super) is_changed: bool,
    /// The number of the news, if there is some.
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

    /// Notes where a task was found that nobody has changed yet.
    pub(super) fn note_seen(&mut self, task: &Task) {
        if !self.entries.contains_key(&task.id) {
            self.seen.insert(task.id, task.state);
        }
    }

    /// The state of a task as its file shows it, if it was looked at.
    pub(super) fn seen(&self, id: TaskId) -> Option<State> {
        self.seen.get(&id).copied()
    }

    pub(super) fn get(&self, id: TaskId) -> Option<&PendingFile> {
        self.entries.get(&id)
    }

    /// The entry of a task that is to be changed, and was in this state before; none: it is new.
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

    /// Where the file of a task is now.
    pub(super) fn path(&self, id: TaskId, number: i64, state: State) -> Option<String> {
        match self.entries.get(&id) {
            Some(entry) => entry.origin.clone(),
            None if self.missing.contains(&id) => None,
            None => self.moved.get(&id).cloned().or_else(|| names::path(&self.folder, state, number, id)),
        }
    }

    /// A command was carried out.
    pub(super) fn commit_command(&mut self) {
        self.command += 1;
        self.before.clear();
        self.new_downstreams.clear();
    }

    /// A command was refused: what it did is undone.
    pub(super) fn undo_command(&mut self) {
        self.command += 1;
        for (id, before) in std::mem::take(&mut self.before).into_iter().rev() {
            match before {
                Some(before) => _ = self.entries.insert(id, before),
                None => {
                    self.entries.remove(&id);
                    // The last one that came goes first.
                    self.order.pop();
                }
            }
        }
        self.new_downstreams.clear();
    }

    /// Those that the command under way has changed, and of which the task is not known.
    pub(super) fn unread(&self) -> Vec<TaskId> {
        let is_unknown =
            |id: &TaskId| self.entries.get(id).is_some_and(|entry| entry.task.is_none() && !entry.is_removed);
        self.before.iter().map(|(id, _)| *id).filter(is_unknown).collect()
    }

    /// The files of tasks that are leased now.
    pub(super) fn leased(&mut self) -> impl Iterator<Item = (TaskId, Token, LeasedFile)> {
        let Self { read, entries, .. } = self;
        read.drain().filter_map(|(id, read)| {
            let entry = entries.get(&id)?;
            let task = entry.task.as_ref()?;
            (task.state == State::Leased && !entry.is_rewritten).then_some((id, task.token, read))
        })
    }

    /// All entries, in their order.
    pub(super) fn entries(&self) -> impl Iterator<Item = (TaskId, &PendingFile)> {
        self.order.iter().filter_map(|id| Some((*id, self.entries.get(id)?)))
    }
}

/// Whether a change of a task shows in the text of its file. Where it is, who has it and what it holds do not.
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
