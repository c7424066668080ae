//! Which tasks, and what is to become of them.

use interval_queue_contract::{InvalidInput, Label, Micros};
use serde::{Deserialize, Serialize};

use crate::{
    Key, Kind, MAX_PAGE, NewEdge, State, Tag, Task, TaskId, When, WorkerId, command::check_priority,
};

/// Which tasks of a queue. Each condition that is given must hold; of a list one is enough. None: all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Selector {
    /// These.
    pub ids: Vec<TaskId>,
    /// Of these kinds.
    pub kinds: Vec<Kind>,
    /// In these states. Purged ones are selected only if they are named.
    pub states: Vec<State>,
    /// With this key.
    pub key: Option<Key>,
    /// With this unique name, whether or not it has it now.
    pub unique: Option<Key>,
    /// With this tag.
    pub tag: Option<Tag>,
    /// Leased to this worker.
    pub worker: Option<WorkerId>,
    /// Whose last error has this text.
    pub error: Option<String>,
    /// Added at this instant or later, on the store's clock.
    pub added_from: Option<Micros>,
    /// Added before this instant.
    pub added_before: Option<Micros>,
    /// Ended before this instant.
    pub ended_before: Option<Micros>,
}

impl Selector {
    /// These tasks.
    pub fn ids(ids: impl IntoIterator<Item = TaskId>) -> Self {
        Self { ids: ids.into_iter().collect(), ..Self::default() }
    }

    /// Those in these states.
    pub fn states(states: impl IntoIterator<Item = State>) -> Self {
        Self { states: states.into_iter().collect(), ..Self::default() }
    }

    /// Whether it selects every task.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it selects this one. A store that finds tasks by other means finds the same.
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
/// What the error of a task that has left a queue begins with; then comes where to.
pub const MOVED: &str = "it was moved to ";

/// What is to become of the selected tasks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Verb {
    /// They are cancelled. Workers are asked to stop those that run, which end as cancelled, however their runs end. Of
    /// ended ones nothing changes.
    Cancel,
    /// Ended ones go through all their gates again, with all their attempts, and so wait for upstreams that run again,
    /// too. Those that had seen their end and have not started wait for them again. Those whose unique name another
    /// task has are [not retried](crate::Touched::taken). Those that have left for another queue and not arrived keep
    /// their runs and times. Of others nothing changes.
    Retry,
    /// Scheduled ones are run now; workers give back those that run. Of others nothing changes.
    Release,
    /// Those that nobody runs get a new time, so long from now, and wait for it. Of others nothing changes.
    Delay(Micros),
    /// Those that have not ended have this priority, as if they had been added with it. A run goes on.
    Priority(i32),
    /// They have this tag, too. Those that have it are not touched; those with as many as can be are kept as they are.
    Tag(Tag),
    /// They do not have this tag any more. Those without it are not touched.
    Untag(Tag),
    /// Those that nobody runs are cancelled here with this place as the reason, and have the tag [`MOVING`], for
    /// somebody who imports them there. Those that wait for them go on waiting. Of others nothing changes.
    Move(Label),
    /// Those that nobody runs wait for this task, too, before they go on to their other gates. Those that wait for it
    /// already are not touched. Those for which it waits itself, through whatever others, are kept as they are: no
    /// cycle can be made. So are those for which more than [`MAX_LOOKED_AT`](crate::MAX_LOOKED_AT) tasks wait, if it
    /// has upstreams, and those with as many upstreams as can be. It is an error if it is not stored here.
    Link(NewEdge),
    /// Those that wait do not wait for this task any more, nor get its result; failed and cancelled ones will not when
    /// they are retried. Others, and those that never waited for it, are not touched.
    Unlink(TaskId),
    /// Ended ones are forgotten, with their payloads and results. A task that has not ended keeps its upstreams. An ended
    /// one does not: it runs without their results if it is retried.
    Purge,
}

impl Verb {
    /// Whether it does anything to a task in this state.
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

    /// Whether there is nothing to do to a task in a state that it acts on. Of edges its row says nothing.
    pub(crate) fn is_done_to(&self, task: &Task) -> bool {
        match self {
            Self::Priority(priority) => task.priority == *priority,
            Self::Tag(tag) => task.tags.contains(tag),
            Self::Untag(tag) => !task.tags.contains(tag),
            // It runs at its destination. A task that has left and not arrived can be had back.
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
