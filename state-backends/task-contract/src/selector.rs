//! Selectors of tasks, and verbs on them.

use interval_queue_contract::{InvalidInput, Label, Micros};
use serde::{Deserialize, Serialize};

use crate::{
    Cursor, Key, Kind, MAX_PAGE, MAX_TAGS, MIN_SUFFIX, NewEdge, Order, State, Tag, Task, TaskId, When,
    WorkerId, command::check_priority,
};

/// Selects tasks of a queue: all given conditions must hold, of a list one element. The default
/// selects all but purged tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Selector {
    /// With one of these ids.
    pub ids: Vec<TaskId>,
    /// With an id that ends with this text: at least [`MIN_SUFFIX`] lower-case characters.
    pub id_suffix: Option<String>,
    /// Of one of these kinds.
    pub kinds: Vec<Kind>,
    /// In one of these states; purged tasks only if named here.
    pub states: Vec<State>,
    /// With this key.
    pub key: Option<Key>,
    /// With this unique name, held or not.
    pub unique: Option<Key>,
    /// With all of these tags.
    pub tags: Vec<Tag>,
    /// Made by this schedule.
    pub schedule: Option<Key>,
    /// Held by this worker, now or last.
    pub worker: Option<WorkerId>,
    /// With this text in the last error.
    pub error: Option<String>,
    /// With this text in the payload as it was added: JSON, with its quotes and white space.
    pub payload: Option<String>,
    /// Added at this instant of the store's clock or later.
    pub added_from: Option<Micros>,
    /// Added before this instant.
    pub added_before: Option<Micros>,
    /// Ended at this instant or later.
    pub ended_from: Option<Micros>,
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

    /// Whether the selector has no condition.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the selector matches this task, apart from its payload. Stores that select by other
    /// means must agree.
    pub fn matches(&self, task: &Task) -> bool {
        fn one<T: PartialEq>(of: &[T], it: &T) -> bool {
            of.is_empty() || of.contains(it)
        }
        let is_unique = |name: &Key| task.unique.as_ref().is_some_and(|unique| unique.name == *name);
        let is_of_schedule = |name: &Key| task.schedule.as_ref().is_some_and(|made| made.schedule == *name);
        let errs = |text: &String| task.error.as_ref().is_some_and(|error| error.contains(text.as_str()));
        one(&self.ids, &task.id)
            && one(&self.kinds, &task.kind)
            && (self.states.contains(&task.state) || self.states.is_empty() && task.state != State::Purged)
            && self.key.as_ref().is_none_or(|key| task.key.as_ref() == Some(key))
            && self.unique.as_ref().is_none_or(is_unique)
            && self.id_suffix.as_ref().is_none_or(|suffix| task.id.to_string().ends_with(suffix.as_str()))
            && self.tags.iter().all(|tag| task.tags.contains(tag))
            && self.schedule.as_ref().is_none_or(is_of_schedule)
            && self.worker.is_none_or(|worker| task.worker == Some(worker))
            && self.error.as_ref().is_none_or(errs)
            && self.added_from.is_none_or(|from| task.added >= from)
            && self.added_before.is_none_or(|before| task.added < before)
            && self.ended_from.is_none_or(|from| task.ended.is_some_and(|ended| ended >= from))
            && self.ended_before.is_none_or(|before| task.ended.is_some_and(|ended| ended < before))
    }

    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        if self.ids.len() > MAX_PAGE as usize {
            let many = self.ids.len();
            return Err(InvalidInput::new(format!(
                "{many} ids at once: name at most {MAX_PAGE}, in several commands"
            )));
        }
        if let Some(suffix) = &self.id_suffix {
            let is_of_id = |c: char| c == '-' || c.is_ascii_digit() || ('a'..='f').contains(&c);
            if suffix.len() < MIN_SUFFIX || !suffix.chars().all(is_of_id) {
                return Err(InvalidInput::new(format!(
                    "{suffix:?} is no end of a task id: give its last {MIN_SUFFIX} characters or more, as in 3a1f2b4d"
                )));
            }
        }
        if self.tags.len() > MAX_TAGS {
            return Err(InvalidInput::new(format!(
                "{} tags: a task has at most {MAX_TAGS}",
                self.tags.len()
            )));
        }
        Ok(())
    }

    /// The position from which a selection after this one begins: no earlier than the selector's
    /// times allow.
    #[doc(hidden)]
    pub fn begin(&self, after: Cursor) -> Cursor {
        let first = match after.order {
            Order::Oldest => self.added_from.map(|from| (from - Micros::new(1), TaskId::LAST)),
            Order::Newest => self.added_before.map(|before| (before, TaskId::FIRST)),
            Order::Ended => self.ended_before.map(|before| (before, TaskId::FIRST)),
        };
        first.map_or(after, |(at, id)| after.max(Cursor { at, id, ..after }))
    }

    /// Whether the counts, by kind and state only, answer the selector.
    #[doc(hidden)]
    pub fn is_counted(&self) -> bool {
        self.counted_part() == *self
    }

    fn counted_part(&self) -> Self {
        let (states, kinds) = (self.states.clone(), self.kinds.clone());
        Self { states, kinds, ..Self::default() }
    }
}

/// Tag of tasks that left a queue and are not imported elsewhere yet.
pub const MOVING: &str = "moving";
/// Prefix of a moved task's error; the destination follows.
pub const MOVED: &str = "it was moved to ";

/// An action on selected tasks. Tasks in other states stay unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Verb {
    /// Cancel live tasks. Workers must stop running ones, which end as cancelled however their runs
    /// end.
    Cancel,
    /// Send ended tasks through all gates again, with all attempts, waiting also for upstreams that
    /// run again. Downstreams that used their end and have not started wait for them again. Tasks
    /// whose unique name is held are [not retried](crate::Touched::taken). A task that left for
    /// another queue and did not arrive keeps its runs and times.
    Retry,
    /// Make scheduled tasks due now; workers give back running ones.
    Release,
    /// Set the time of live tasks that do not run to this long from now.
    Delay(Micros),
    /// Give live tasks this priority, as if added with it. Runs go on.
    Priority(i32),
    /// Add this tag, unless the task has it or as many as allowed.
    Tag(Tag),
    /// Remove this tag.
    Untag(Tag),
    /// Cancel live tasks that do not run, with this place as the reason, and tag them [`MOVING`]
    /// for an import there. Downstreams go on waiting.
    Move(Label),
    /// Make live tasks that do not run wait for this stored task, too, before their other gates.
    /// Unchanged: tasks that wait for it already; tasks for which it waits, also through others;
    /// with upstreams of its own, tasks with more than
    /// [`MAX_CYCLE_SEARCH`](crate::MAX_CYCLE_SEARCH) direct and indirect downstreams; tasks with
    /// the maximum of upstreams.
    Link(NewEdge),
    /// Remove the edge from this task: added and waiting tasks neither wait for it nor get its
    /// result; failed and cancelled ones likewise when retried.
    Unlink(TaskId),
    /// Forget ended tasks, with payloads and results. Live tasks keep their upstreams; ended ones,
    /// if retried, run without these results.
    Purge,
}

impl Verb {
    /// Whether the verb acts on tasks in this state.
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

    /// By its row alone; of a state that the verb acts on.
    pub(crate) fn is_done_to(&self, task: &Task) -> bool {
        match self {
            Self::Priority(priority) => task.priority == *priority,
            Self::Tag(tag) => task.tags.contains(tag),
            Self::Untag(tag) => !task.tags.contains(tag),
            // A task that arrived runs at its destination; another can be retried.
            Self::Retry => {
                let is_moved = task.error.as_deref().is_some_and(|error| error.starts_with(MOVED));
                let has_arrived = !task.tags.iter().any(|tag| tag.as_str() == MOVING);
                task.state == State::Cancelled && is_moved && has_arrived
            }
            _ => false,
        }
    }

    /// The verb's name.
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
