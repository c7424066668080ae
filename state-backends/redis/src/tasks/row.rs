//! The stored rows of leased tasks: see `forms.lua`.

use interval_queue_contract::{Micros, StateError};
use interval_queue_task_contract::{Json, State, Task, TaskId, Token};

use super::{
    pack::{Packed, nonsense, number, take as bytes},
    take,
};

/// The first byte of the row of a leased plain task. Other rows are packed.
const LEASED: u8 = 2;

/// The task of a row, and its payload if the row has it.
///
/// # Errors
///
/// The row is invalid.
pub(super) fn task(id: TaskId, row: &[u8]) -> Result<(Task, Option<Json>), StateError> {
    if let [LEASED, plain @ ..] = row {
        return plain_task(id, plain).ok_or_else(|| nonsense("a row is cut off"))?;
    }
    let row = Packed::read(row)?;
    let added = row.get::<Micros>("added")?;
    let due = row.get::<Option<i64>>("due")?.unwrap_or(added.get().cast_signed());
    let payload = match row.field("payload") {
        Packed::Flag(_) => None,
        payload => Some(payload.to()?),
    };
    Ok((take::task(&row, id, due)?, payload))
}

type Plain = Result<(Task, Option<Json>), StateError>;

/// `None`: the row is truncated.
fn plain_task(id: TaskId, mut row: &[u8]) -> Option<Plain> {
    let text = |row: &mut _, size| bytes(row, size).map(Packed::Text);
    let int = |row: &mut _, size| number(row, size).map(|number| Packed::Int(number.cast_signed()));
    let worker = text(&mut row, 16)?;
    let (incarnation, attempt) = (int(&mut row, 7)?, int(&mut row, 4)?);
    let (leased, prefetched) = (int(&mut row, 7)?, number(&mut row, 1)? == 1);
    let (added, position) = (int(&mut row, 7)?, int(&mut row, 4)?);
    let kind_size = usize::try_from(number(&mut row, 1)?).ok()?;
    let kind = text(&mut row, kind_size)?;
    let made = || {
        let added: Micros = added.to()?;
        let task = Task {
            kind: kind.to()?,
            due: added.get().cast_signed(),
            added,
            position: position.to()?,
            state: State::Leased,
            token: Token { incarnation: incarnation.to()?, attempt: attempt.to()? },
            worker: worker.to()?,
            leased: leased.to()?,
            prefetched,
            ..Task::bare(id)
        };
        Ok((task, Some(Packed::Text(row).to()?)))
    };
    Some(made())
}
