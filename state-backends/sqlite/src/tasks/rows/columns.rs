//! Statements that read and write the columns of declared rows.

use std::sync::LazyLock;

use interval_queue_task_contract::{
    Task,
    field::{RowReader as _, Value},
    record::{Record, marked, read_task},
};
use rusqlite::{Row, Statement};

use super::{row_reader::Reader, tables::Tables};
use crate::store::Fault;

/// The select list of a task: its number, and all columns.
pub(super) static SELECTED: LazyLock<String> = LazyLock::new(|| format!("number, {}", Task::NAMES));

/// Inserts a task. Parameters: the queue, all columns and the payload.
pub(super) static INSERT: LazyLock<String> = LazyLock::new(|| insertion::<Task>(", payload"));

fn insertion<R: Record>(more: &str) -> String {
    let values = ", ?".repeat(R::COLUMNS.len() + more.matches(',').count());
    format!("INSERT INTO {} (queue, {}{more}) VALUES (?{values})", R::TABLE, R::NAMES)
}

pub(super) fn bind(statement: &mut Statement<'_>, at: usize, value: Value<'_>) -> rusqlite::Result<()> {
    match value {
        Value::Int(number) => statement.raw_bind_parameter(at, number),
        Value::Truth(flag) => statement.raw_bind_parameter(at, flag),
        Value::Text(text) | Value::Json(text) => statement.raw_bind_parameter(at, text.as_deref()),
        Value::Id(id) => statement.raw_bind_parameter(at, id.map(|id| id.hyphenated().to_string())),
    }
}

/// Binds all columns, starting at the second parameter. Returns the next parameter.
pub(super) fn bind_all<R: Record>(statement: &mut Statement<'_>, row: &R) -> rusqlite::Result<usize> {
    bind_marked(statement, ALL, row)
}

/// Binds the columns of a bit mask, starting at the second parameter. Returns the next parameter.
pub(super) fn bind_marked<R: Record>(
    statement: &mut Statement<'_>,
    mask: u64,
    row: &R,
) -> rusqlite::Result<usize> {
    let mut next = 2;
    for column in marked::<R>(mask) {
        bind(statement, next, (column.value)(row))?;
        next += 1;
    }
    Ok(next)
}

/// The bit of the result, above the bits of the columns.
pub(super) const RESULT: u64 = 1 << 63;
/// The bits of all columns.
pub(super) const ALL: u64 = !RESULT;

/// Updates only the columns of a bit mask, since SQLite updates every index with one of the
/// columns. Parameters: the number, then the columns.
pub(super) fn update<R: Record>(mask: u64) -> String {
    let result = (mask & RESULT != 0).then_some("result");
    let names = marked::<R>(mask & !RESULT).map(|column| column.name).chain(result);
    let set: Vec<_> = names.enumerate().map(|(n, name)| format!("{name} = ?{}", n + 2)).collect();
    format!("UPDATE {} SET {} WHERE number = ?1", R::TABLE, set.join(", "))
}

/// Requires the columns [`SELECTED`].
pub(super) fn read(row: &Row<'_>) -> Result<(i64, Task), Fault> {
    let reader = &mut Reader::of(row);
    Ok((reader.read()?, read_task(reader)?))
}

impl Tables<'_> {
    /// The rows of a statement that goes on after the name of the table.
    pub(super) fn rows<R: Record>(&self, rest: &str, params: impl rusqlite::Params) -> Result<Vec<R>, Fault> {
        let sql = format!("SELECT {} FROM {} {rest}", R::NAMES, R::TABLE);
        self.all(&sql, params, |row| R::read(&mut Reader::of(row)))
    }

    pub(super) fn row<R: Record>(
        &self,
        rest: &str,
        params: impl rusqlite::Params,
    ) -> Result<Option<R>, Fault> {
        Ok(self.rows(rest, params)?.into_iter().next())
    }

    /// Inserts a row, or updates the one with its key.
    pub(super) fn upsert<R: Record>(&mut self, row: &R) -> Result<(), Fault> {
        let queue = self.made_number()?;
        let set: Vec<String> =
            R::COLUMNS.iter().map(|column| format!("{0} = excluded.{0}", column.name)).collect();
        let sql = format!("{} ON CONFLICT DO UPDATE SET {}", insertion::<R>(""), set.join(", "));
        let mut statement = self.prepare(&sql)?;
        statement.raw_bind_parameter(1, queue)?;
        bind_all(&mut statement, row)?;
        statement.raw_execute()?;
        Ok(())
    }

    /// Deletes the row with this key.
    pub(super) fn delete<R: Record>(&mut self, key: &str) -> Result<(), Fault> {
        let queue = self.number()?;
        let column = R::COLUMNS.first().map_or("", |column| column.name);
        self.execute(&format!("DELETE FROM {} WHERE queue = ?1 AND {column} = ?2", R::TABLE), (queue, key))?;
        Ok(())
    }
}
