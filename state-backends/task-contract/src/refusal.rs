//! Why the rules refuse a command, and the one text of each reason.

use interval_queue_contract::{InvalidInput, Micros, StateError, StateErrorKind};
use serde::Deserialize;

use crate::{Key, MAX_KIND_POLICIES, Settings, State, TaskId, WorkerId};

/// Why a command is refused; it changes nothing. Stores with rules of their own make their errors
/// of this.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The queue is not stored.
    NoQueue,
    /// Task, size of its payload or result, and the queue's `max_payload`.
    TooLarge(TaskId, u64, u32),
    /// A task, and the time since it was first sent, beyond [`LATE_ADD`](crate::LATE_ADD).
    Late(TaskId, Micros),
    /// The holder of a unique name, the name, and the holder's state.
    NameTaken(TaskId, Key, State),
    /// A new task, and the upstream that is not stored.
    NoUpstream(TaskId, TaskId),
    /// An imported task, and the upstream that is not stored.
    NotImported(TaskId, TaskId),
    /// A task that is not stored.
    NoTask(TaskId),
    /// Sequence and worker of a step that is not newer than the last one.
    Superseded(u64, WorkerId),
    /// A task of a schedule, the id that it must have, and the schedule.
    WrongId(TaskId, TaskId, Key),
    /// The stored settings, which differ.
    OtherSettings(Box<Settings>),
    /// Number of kinds that would have a policy of their own.
    TooManyKinds(usize),
    /// A schedule that is not stored.
    NoSchedule(Key),
    /// A worker that is not stored, or holds no tasks.
    NoWorker(WorkerId),
}

/// The text of [`Late`](Refusal::Late), after the task's id.
pub fn late_add(age: Micros) -> String {
    format!(
        "was first sent {:?} ago: it may have been added, run and forgotten since; add it under a new id if it has not",
        age.to_duration()
    )
}

impl From<Refusal> for StateError {
    fn from(refusal: Refusal) -> Self {
        let (kind, text) = match refusal {
            Refusal::NoQueue => (
                StateErrorKind::NotFound,
                "there is no such queue of tasks: the first task, worker or setting creates it".into(),
            ),
            Refusal::TooLarge(id, size, most) => (
                StateErrorKind::Invalid,
                format!(
                    "the payload of task {id} has {size} bytes: this queue stores at most {most}, so store what is large \
                     elsewhere and add where it is"
                ),
            ),
            Refusal::Late(id, age) => (StateErrorKind::Conflict, format!("task {id} {}", late_add(age))),
            Refusal::NameTaken(holder, name, state) => (
                StateErrorKind::Conflict,
                format!(
                    "task {holder} has the unique name {:?} and is in state {state}: nothing was added; wait until it has \
                     ended, cancel it, or keep or replace it",
                    name.as_str()
                ),
            ),
            Refusal::NoUpstream(id, up) => (
                StateErrorKind::NotFound,
                format!(
                    "task {id} waits for {up}, which is not stored here: name an earlier task of the batch, or one that is \
                     there"
                ),
            ),
            Refusal::NotImported(id, up) => (
                StateErrorKind::NotFound,
                format!("task {id} waits for {up}, which is not stored here: import that first"),
            ),
            Refusal::NoTask(id) => {
                (StateErrorKind::NotFound, format!("task {id} is not stored here: name one that is there"))
            }
            Refusal::Superseded(sequence, worker) => (
                StateErrorKind::Superseded,
                format!("step {sequence} of worker {worker} came late: a newer one was obeyed"),
            ),
            Refusal::WrongId(id, right, schedule) => (
                StateErrorKind::Invalid,
                format!("task {id} is to be {right}: the id names schedule {schedule} and its instant"),
            ),
            Refusal::OtherSettings(settings) => {
                (StateErrorKind::Conflict, format!("the queue is there with other settings: {settings:?}"))
            }
            Refusal::TooManyKinds(kinds) => (
                StateErrorKind::Invalid,
                format!(
                    "{kinds} kinds with a policy of their own: a queue stores at most {MAX_KIND_POLICIES}; remove the policy \
                     of another kind first"
                ),
            ),
            Refusal::NoSchedule(name) => {
                (StateErrorKind::NotFound, format!("there is no schedule {:?} in this queue", name.as_str()))
            }
            Refusal::NoWorker(worker) => (
                StateErrorKind::NotFound,
                format!("there is no worker {worker} in this queue that may hold tasks"),
            ),
        };
        match kind {
            StateErrorKind::Invalid => InvalidInput::new(text).into(),
            kind => Self::new(kind, text),
        }
    }
}
