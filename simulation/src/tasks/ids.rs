//! The ids of a plan's tasks: known beforehand, and short in the journal.

use interval_queue_task_contract::TaskId;
use uuid::Uuid;

const ID_MARK: u128 = 0x7000_8000_0000_0000_0000;

/// Ids are in the order of numbers.
pub(super) fn id(number: usize) -> TaskId {
    TaskId::new(Uuid::from_u128((number as u128 + 1) << 96 | ID_MARK))
}

pub(super) fn number(id: TaskId) -> Option<usize> {
    let bits = id.uuid().as_u128();
    (bits & ((1 << 96) - 1) == ID_MARK).then(|| (bits >> 96) as usize - 1)
}

pub(super) fn short(id: TaskId) -> String {
    number(id).map_or_else(|| id.to_string(), |number| format!("t{number}"))
}
