//! Selectors of tasks, and the verbs that change them.

use interval_queue_contract::{InvalidInput, Label, Micros};
use serde::{Deserialize, Serialize};

use crate::{
    Key, Kind, MAX_PAGE, NewEdge, State, Tag, Task, TaskId, When, WorkerId, command::check_priority,
};

/// A selection of tasks of a queue. All given conditions must hold; of a list one element is
/// enough. The default selects all tasks but purged ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Selector {
    /// With one of these ids.
    pub ids: Vec<TaskId>,
    /// Of one of these kinds.
    pub kinds: Vec<Kind>,
    /// In one of these states. Purged tasks are selected only if named here.
    pub states: Vec<State>,
    /// With this key.
    pub key: Option<Key>,
    /// With this unique name, held or not.
    pub unique: Option<Key>,
    /// With this tag.
    pub tag: Option<Tag>,
    /// Leased to this worker, now or last.
    pub worker: Option<WorkerId>,
    /// Whose last error contains this text.
    pub error: Option<String>,
    /// Added at this instant of the store's clock or later.
    pub added_from: Option<Micros>,
    /// Added before this instant.
    pub added_before: Option<Micros>,
    /// Ended before this instant.
    pub ended_before: Option<Micros>,
}

impl Selector {
    /// Selects these tasks.
    pub fn ids(ids: impl IntoIterator<Item = TaskId>) -> Self {
        Self { ids: ids.into_iter().collect(), ..Self::default() }
    }

    /// Selects tasks in these states.
    pub fn states(states: impl IntoIterator<Item = State>) -> Self {
        Self { states: states.into_iter().collect(), ..Self::default() }
    }

    /// Whether it selects every task.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it selects this task. A store that selects by other means must return the same
    /// tasks.
    pub fn matches(&self, task: &Task) -> bool {
        fn one<T: PartialEq>(of: &[T], it: &T) -> bool {
            of.is_empty() || of.contains(it)
        }
        let is_unique = |name: &Key| task.unique.as_ref().is_some_and(|unique| unique.name == *name);
        let errs = |text: &String| task.error.as_ref().is_some_and(|error| error.contains(text.as_str()));
        one(&self.ids, &task.id)
            && one(&self.kinds, &task.kind)
            && (self.states.contains(&task.state) || self.states.is_empty() && task.state != State::Purged)
            && self.key.as_ref().is_none_or(|key| task.key.as_ref() == Some(key))
            && self.unique.as_ref().is_none_or(is_unique)
            && self.tag.as_ref().is_none_or(|tag| task.tags.contains(tag))
            && self.worker.is_none_or(|worker| task.worker == Some(worker))
            && self.error.as_ref().is_none_or(errs)
            && self.added_from.is_none_or(|from| task.added >= from)
            && self.added_before.is_none_or(|before| task.added < before)
            && self.ended_before.is_none_or(|before| task.ended.is_some_and(|ended| ended < before))
    }

    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        if self.ids.len() > MAX_PAGE as usize {
            let many = self.ids.len();
            return Err(InvalidInput::new(format!(
                "{many} ids at once: name at most {MAX_PAGE}, in several commands"
            )));
        }
        Ok(())
    }
}

/// The tag of tasks that have left a queue and are not imported elsewhere yet.
pub const MOVING: &str = "moving";
/// The prefix of a moved task's error; the destination follows.
pub const MOVED: &str = "it was moved to ";

/// An action on selected tasks. Tasks in other states than it acts on stay unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Verb {
    /// Cancels live tasks. Workers are asked to stop running ones, which end as cancelled however
    /// their runs end.
    Cancel,
    /// Sends ended tasks through all their gates again, with all attempts, waiting also for
    /// upstreams that run again. Downstreams that have used their end and not started wait for them
    /// again. Not retried: tasks whose unique name another task [has taken](crate::Touched::taken).
    /// A task that has left for another queue and not arrived keeps its runs and times.
    Retry,
    /// Makes scheduled tasks due now; workers give back running ones.
    Release,
    /// Postpones live tasks that do not run: their time is this long from now.
    Delay(Micros),
    /// Gives live tasks this priority, as if they had been added with it. Runs go on.
    Priority(i32),
    /// Adds this tag. Unchanged: tasks that have it, or as many tags as allowed.
    Tag(Tag),
    /// Removes this tag.
    Untag(Tag),
    /// Cancels live tasks that do not run, with this place as the reason, and tags them [`MOVING`]
    /// for an import there. Their downstreams go on waiting.
    Move(Label),
    /// Makes live tasks that do not run wait for this task, too, before their other gates. It is an
    /// error if it is not stored here. Unchanged: tasks that wait for it already; tasks for which
    /// it waits, directly or through others; if it has upstreams, tasks with more than
    /// [`MAX_LOOKED_AT`](crate::MAX_LOOKED_AT) downstreams; and tasks with as many upstreams as
    /// allowed.
    Link(NewEdge),
    /// Removes the edge from this task, so that tasks neither wait for it nor get its result. It
    /// acts on added and waiting tasks, and on failed and cancelled ones for their retry.
    Unlink(TaskId),
    /// Forgets ended tasks with their payloads and results. A live task keeps its upstreams; an
    /// ended one does not, and a retry of it runs without their results.
    Purge,
}

impl Verb {
    /// Whether it acts on a task in this state.
    pub fn acts_on(&self, state: State) -> bool {
        match self {
            Self::Cancel | Self::Priority(_) => !state.is_ended(),
            Self::Delay(_) | Self::Move(_) | Self::Link(_) => !state.is_ended() && state != State::Leased,
            Self::Unlink(_) => {
                matches!(state, State::Added | State::Waiting | State::Failed | State::Cancelled)
            }
            Self::Release => matches!(state, State::Scheduled | State::Leased),
            Self::Tag(_) | Self::Untag(_) => state != State::Purged,
            Self::Retry | Self::Purge => state.is_ended() && state != State::Purged,
        }
    }

    /// Whether a task in a state that it acts on needs no change, by its row alone; edges are not
    /// checked.
    pub(crate) fn is_done_to(&self, task: &Task) -> bool {
        match self {
            Self::Priority(priority) => task.priority == *priority,
            Self::Tag(tag) => task.tags.contains(tag),
            Self::Untag(tag) => !task.tags.contains(tag),
            // A task that arrived runs at its destination; one that left and did not arrive can be
            // retried.
            Self::Retry => {
                let is_moved = task.error.as_deref().is_some_and(|error| error.starts_with(MOVED));
                let has_arrived = !task.tags.iter().any(|tag| tag.as_str() == MOVING);
                task.state == State::Cancelled && is_moved && has_arrived
            }
            _ => false,
        }
    }

    /// Its name.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::Release => "release",
            Self::Delay(_) => "delay",
            Self::Priority(_) => "priority",
            Self::Tag(_) => "tag",
            Self::Untag(_) => "untag",
            Self::Move(_) => "move",
            Self::Link(_) => "link",
            Self::Unlink(_) => "unlink",
            Self::Purge => "purge",
        }
    }

    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        match self {
            Self::Delay(delay) => When::After(*delay).check("delay"),
            Self::Priority(priority) => check_priority(*priority),
            _ => Ok(()),
        }
    }
}
