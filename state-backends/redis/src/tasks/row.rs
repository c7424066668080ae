//! The stored rows of leased tasks: see `forms.lua`.

use interval_queue_contract::{Micros, StateError};
use interval_queue_task_contract::{Json, Kind, State, Task, TaskId, Token, WorkerId};
use uuid::Uuid;

use super::task_answer::{nonsense, unpacked};

/// The first byte of a leased plain task. Other rows are packed.
const LEASED: u8 = 2;

/// The payload is `None` unless the task is plain.
pub(super) fn task(id: TaskId, row: &[u8]) -> Result<(Task, Option<Json>), StateError> {
    if let [LEASED, plain @ ..] = row {
        let (task, payload) = plain_task(id, plain).ok_or_else(|| nonsense("the row of a plain task"))?;
        return Ok((task, Some(payload)));
    }
    // The row does not repeat its name, the id.
    let (count, fields) = match *row {
        [count @ 0x80..=0x8f, ref fields @ ..] => (u16::from(count & 15), fields),
        [0xde, high, low, ref fields @ ..] => (u16::from_be_bytes([high, low]), fields),
        _ => return Err(nonsense("the row of a task")),
    };
    let head = [&[0xde], &count.saturating_add(1).to_be_bytes()[..], b"\xa2id\xb0"].concat();
    Ok((unpacked(&[&head, &id.uuid().as_bytes()[..], fields].concat())?, None))
}

/// `None`: the row is invalid.
fn plain_task(id: TaskId, mut row: &[u8]) -> Option<(Task, Json)> {
    let worker = Uuid::from_slice(take(&mut row, 16)?).ok()?;
    let token = Token { incarnation: micros(&mut row)?, attempt: number(&mut row, 4)?.try_into().ok()? };
    let (leased, prefetched, added) = (micros(&mut row)?, number(&mut row, 1)? == 1, micros(&mut row)?);
    let position = number(&mut row, 4)?.try_into().ok()?;
    let kind_size = number(&mut row, 1)?.try_into().ok()?;
    let kind = Kind::new(str::from_utf8(take(&mut row, kind_size)?).ok()?).ok()?;
    let task = Task {
        kind,
        due: added.get().cast_signed(),
        added,
        position,
        state: State::Leased,
        token,
        worker: Some(WorkerId::new(worker)),
        leased: Some(leased),
        prefetched,
        ..Task::bare(id)
    };
    Some((task, Json::stored(str::from_utf8(row).ok()?)))
}

fn take<'a>(rest: &mut &'a [u8], size: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(size)?;
    *rest = left;
    Some(taken)
}

fn number(rest: &mut &[u8], size: usize) -> Option<u64> {
    Some(take(rest, size)?.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

fn micros(rest: &mut &[u8]) -> Option<Micros> {
    number(rest, 7)?.try_into().ok()
}
