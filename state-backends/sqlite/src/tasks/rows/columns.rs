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

fn bind(statement: &mut Statement<'_>, at: usize, value: Value<'_>) -> rusqlite::Result<()> {
    match value {
        Value::Int(number) => statement.raw_bind_parameter(at, number),
        Value::Truth(flag) => statement.raw_bind_parameter(at, flag),
        Value::Text(text) | Value::Json(text) => statement.raw_bind_parameter(at, text.as_deref()),
        Value::Id(id) => statement.raw_bind_parameter(at, id.map(|id| id.hyphenated().to_string())),
    }
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

/// Stands for an upsert in place of a bit mask.
const UPSERT: u64 = 0;

/// The statement that updates the columns of a bit mask, or upserts a row. An update names only
/// these columns, since SQLite writes every index with one of them. Parameters: the number of the
/// row or of the queue, then the columns.
pub(super) fn write<R: Record>(mask: u64) -> String {
    if mask == UPSERT {
        let names = R::COLUMNS.iter().skip(R::KEYS).map(|column| column.name);
        let set: Vec<_> = names.map(|name| format!("{name} = excluded.{name}")).collect();
        return format!("{} ON CONFLICT DO UPDATE SET {}", insertion::<R>(""), set.join(", "));
    }
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
    pub(super) fn rows<R: Record>(&self, sql: &str, params: impl rusqlite::Params) -> Result<Vec<R>, Fault> {
        self.all(sql, params, |row| R::read(&mut Reader::of(row)))
    }

    pub(super) fn row<R: Record>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
    ) -> Result<Option<R>, Fault> {
        Ok(self.rows(sql, params)?.into_iter().next())
    }

    /// Inserts a row, or updates the one with its key.
    pub(super) fn upsert<R: Record>(&mut self, row: &R) -> Result<(), Fault> {
        let queue = self.made_number()?;
        self.execute_with(&self.writes.of::<R>(UPSERT), queue, row)
    }

    /// Runs a statement whose parameters are a number and all columns.
    pub(super) fn execute_with<R: Record>(&self, sql: &str, number: i64, row: &R) -> Result<(), Fault> {
        let mut statement = self.prepare(sql)?;
        statement.raw_bind_parameter(1, number)?;
        bind_marked(&mut statement, ALL, row)?;
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
