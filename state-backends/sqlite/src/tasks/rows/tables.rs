//! The tables of one queue within one command: the connection, numbers found so far, and rows to
//! write at the end.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Display,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use interval_queue_contract::{QueueName, StateError, StateErrorKind};
use interval_queue_task_contract::{
    Counted, Json, Kind, LogLine, Task, TaskId, Took,
    field::{RowReader as _, to_json},
    record::{Record, differing},
};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row};

use super::{columns, row_reader::Reader};
use crate::store::Fault;

/// Longer payloads and results are kept apart, since the row of a task is written several times.
const MAX_INLINE_BYTES: usize = 500;

/// The statements that write some columns of a row, by table and bit mask.
#[derive(Debug, Default)]
pub struct Writes(Mutex<HashMap<(&'static str, u64), Arc<str>>>);

impl Writes {
    pub(super) fn of<R: Record>(&self, mask: u64) -> Arc<str> {
        let mut statements = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        statements.entry((R::TABLE, mask)).or_insert_with(|| columns::write::<R>(mask).into()).clone()
    }
}

/// The rows of one queue within one command.
pub struct Tables<'c> {
    pub(super) on: &'c Connection,
    path: &'c Path,
    pub(super) writes: &'c Writes,
    pub(super) name: &'c QueueName,
    /// `None`: not read yet. 0: there is no queue.
    pub(super) queue: Option<i64>,
    numbers: HashMap<TaskId, i64>,
    pub(super) counts: BTreeMap<(Kind, Counted), i64>,
    pub(super) times: BTreeMap<(Kind, Took), u64>,
    pub(super) notifies: bool,
    /// A short result waits for the end of its task: one statement costs a third less than two.
    result: Option<(TaskId, Json)>,
}

impl std::fmt::Debug for Tables<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tables").field("queue", &self.name).finish_non_exhaustive()
    }
}

impl<'c> Tables<'c> {
    /// The tables of a queue, over this connection.
    pub fn new(on: &'c Connection, path: &'c Path, writes: &'c Writes, name: &'c QueueName) -> Self {
        let (numbers, counts, times) = (HashMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { on, path, writes, name, queue: None, numbers, counts, times, notifies: false, result: None }
    }

    /// Writes pending rows. Returns the number of the notification if watchers must be notified.
    #[allow(clippy::missing_errors_doc, reason = "as its database does")]
    pub fn finish(mut self) -> Result<Option<i64>, Fault> {
        self.write_result()?;
        self.write_counts()?;
        self.write_times()?;
        if !self.notifies {
            return Ok(None);
        }
        let queue = self.made_number()?;
        let sql = "INSERT INTO interval_queue_task_count (queue, kind, counted, number) VALUES (?1, '', 'news', 1) \
                   ON CONFLICT DO UPDATE SET number = number + 1 RETURNING number";
        // A statement that returns rows takes effect only when all rows were read.
        let numbers = self.all(sql, [queue], |row| Ok(row.get(0)?))?;
        Ok(numbers.into_iter().next())
    }

    pub(super) fn write_counts(&mut self) -> Result<(), Fault> {
        if self.counts.is_empty() {
            return Ok(());
        }
        let queue = self.made_number()?;
        let mut add = self.prepare(
            "INSERT INTO interval_queue_task_count (queue, kind, counted, number) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT DO UPDATE SET number = number + excluded.number",
        )?;
        for ((kind, counted), more) in std::mem::take(&mut self.counts) {
            if more != 0 {
                add.execute((queue, kind.as_str(), counted.as_str(), more))?;
            }
        }
        Ok(())
    }

    pub(super) fn write_times(&mut self) -> Result<(), Fault> {
        if self.times.is_empty() {
            return Ok(());
        }
        let queue = self.made_number()?;
        let mut add = self.prepare(
            "INSERT INTO interval_queue_task_times (queue, kind, hour, cell, number) VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT DO UPDATE SET number = number + excluded.number",
        )?;
        for ((kind, took), more) in std::mem::take(&mut self.times) {
            add.execute((queue, kind.as_str(), took.hour, took.cell, more.cast_signed()))?;
        }
        Ok(())
    }

    pub(super) fn prepare(&self, sql: &str) -> Result<CachedStatement<'c>, Fault> {
        #[cfg(test)]
        super::tests::note(sql);
        Ok(self.on.prepare_cached(sql)?)
    }

    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Result<usize, Fault> {
        Ok(self.prepare(sql)?.execute(params)?)
    }

    /// Errors name the row that cannot be read.
    pub(super) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        mut read: impl FnMut(&Row<'_>) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let mut statement = self.prepare(sql)?;
        let mut rows = statement.query(params)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(read(row).map_err(|fault| self.in_row(sql, row, fault))?);
        }
        Ok(all)
    }

    pub(super) fn first<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        Ok(self.all(sql, params, read)?.into_iter().next())
    }

    /// Requires one row.
    pub(super) fn value<T: rusqlite::types::FromSql>(
        &self,
        sql: &str,
        params: impl Params,
    ) -> Result<T, Fault> {
        Ok(self.prepare(sql)?.query_row(params, |row| row.get(0))?)
    }

    pub(super) fn number_in(&self, sql: &str, params: impl Params) -> Result<u64, Fault> {
        Ok(self.value::<i64>(sql, params)?.unsigned_abs())
    }

    /// Adds the table and the row to an error about a column.
    fn in_row(&self, sql: &str, row: &Row<'_>, fault: Fault) -> Fault {
        let Fault::Refused(error) = fault else { return fault };
        let statement: &rusqlite::Statement<'_> = row.as_ref();
        let is_table = |word: &&str| word.starts_with("interval_queue");
        let from = sql.split_once(" FROM ").map_or("", |(_, from)| from);
        let table = from.split(' ').find(is_table).unwrap_or_default();
        let shown = |n: usize| match row.get_ref(n) {
            Ok(rusqlite::types::ValueRef::Text(text)) => {
                String::from_utf8_lossy(text).chars().take(40).flat_map(char::escape_debug).collect()
            }
            Ok(rusqlite::types::ValueRef::Integer(number)) => number.to_string(),
            _ => "?".to_owned(),
        };
        let column = |n: usize| Some(format!("{} {}", statement.column_name(n).ok()?, shown(n)));
        let which = (0..statement.column_count().min(2)).filter_map(column);
        let which = which.collect::<Vec<_>>().join(", ");
        self.damaged(format_args!("a row of {table} that cannot be used ({which}): {error}")).into()
    }

    pub(super) fn damaged(&self, what: impl Display) -> StateError {
        let (path, queue) = (self.path.display(), self.name);
        let text = format!("{path} has in queue {queue} {what}: put it right, or remove the row");
        StateError::new(StateErrorKind::Damaged, text)
    }

    /// 0, which no queue has: there is no queue.
    pub(super) fn number(&mut self) -> Result<i64, Fault> {
        if let Some(number) = self.queue {
            return Ok(number);
        }
        let sql = "SELECT number FROM interval_queue_task_queue WHERE name = ?1";
        let number = self.first(sql, [self.name.as_str()], |row| Ok(row.get(0)?))?.unwrap_or(0);
        self.queue = Some(number);
        Ok(number)
    }

    pub(super) fn made_number(&mut self) -> Result<i64, Fault> {
        let mut number = self.number()?;
        if number == 0 {
            self.execute("INSERT INTO interval_queue_task_queue (name) VALUES (?1)", [self.name.as_str()])?;
            number = self.on.last_insert_rowid();
            self.queue = Some(number);
        }
        Ok(number)
    }

    /// Records the numbers of the tasks.
    pub(super) fn tasks(&mut self, sql: &str, params: impl Params) -> Result<Vec<Task>, Fault> {
        let found = self.all(sql, params, columns::read)?;
        let note = |(number, task): (i64, Task)| {
            self.numbers.insert(task.id, number);
            task
        };
        Ok(found.into_iter().map(note).collect())
    }

    pub(super) fn one(&mut self, sql: &str, params: impl Params) -> Result<Option<Task>, Fault> {
        Ok(self.tasks(sql, params)?.into_iter().next())
    }

    /// The number of a stored task.
    #[allow(clippy::missing_errors_doc, reason = "as its database does")]
    pub fn number_of(&mut self, id: TaskId) -> Result<Option<i64>, Fault> {
        if let Some(&number) = self.numbers.get(&id) {
            return Ok(Some(number));
        }
        let queue = self.number()?;
        let sql = "SELECT number FROM interval_queue_task INDEXED BY interval_queue_task_id WHERE queue = ?1 AND id = ?2";
        let number = self.prepare(sql)?.query_row((queue, id.to_string()), |row| row.get(0)).optional()?;
        self.numbers.extend(number.map(|number| (id, number)));
        Ok(number)
    }

    /// Inserts a task. `None`: its payload is stored elsewhere.
    #[allow(clippy::missing_errors_doc, reason = "as its database does")]
    pub fn insert_task(&mut self, task: &Task, payload: Option<&Json>) -> Result<(), Fault> {
        let queue = self.made_number()?;
        let mut insert = self.prepare(&columns::INSERT)?;
        let (inline, apart) = parted(payload);
        insert.raw_bind_parameter(1, queue)?;
        let payload = columns::bind_marked(&mut insert, columns::ALL, task)?;
        insert.raw_bind_parameter(payload, inline)?;
        insert.raw_execute()?;
        let number = self.on.last_insert_rowid();
        self.numbers.insert(task.id, number);
        if let Some(payload) = apart {
            self.execute(
                "INSERT INTO interval_queue_task_body (task, payload) VALUES (?1, ?2)",
                (number, payload),
            )?;
        }
        Ok(())
    }

    pub(super) fn put_task(&mut self, before: &Task, after: &Task) -> Result<(), Fault> {
        let mask = differing(before, after);
        if mask == 0 {
            return Ok(());
        }
        let Some(number) = self.number_of(before.id)? else {
            return Err(self.damaged(format_args!("no task {} any more", before.id)).into());
        };
        let result = self.result.take_if(|(id, _)| *id == before.id);
        let with_result = if result.is_some() { columns::RESULT } else { 0 };
        let mut update = self.prepare(&self.writes.of::<Task>(mask | with_result))?;
        update.raw_bind_parameter(1, number)?;
        let next = columns::bind_marked(&mut update, mask, after)?;
        if let Some((_, result)) = &result {
            update.raw_bind_parameter(next, result.as_str())?;
        }
        update.raw_execute()?;
        Ok(())
    }

    fn write_result(&mut self) -> Result<(), Fault> {
        let Some((id, result)) = self.result.take() else { return Ok(()) };
        self.write_body(&RESULT, id, Some(&result))
    }

    /// Immediately, or together with the next write of the task.
    pub(super) fn set_result(&mut self, id: TaskId, result: Option<&Json>) -> Result<(), Fault> {
        self.write_result()?;
        match result {
            Some(short) if short.as_str().len() <= MAX_INLINE_BYTES => {
                self.result = Some((id, short.clone()));
                Ok(())
            }
            other => self.write_body(&RESULT, id, other),
        }
    }

    pub(super) fn remove_task(&mut self, id: TaskId) -> Result<(), Fault> {
        self.write_result()?;
        let Some(number) = self.number_of(id)? else { return Ok(()) };
        self.execute("DELETE FROM interval_queue_task WHERE number = ?1", [number])?;
        self.execute("DELETE FROM interval_queue_task_body WHERE task = ?1", [number])?;
        self.numbers.remove(&id);
        Ok(())
    }

    pub(super) fn body(&mut self, of: &Body, id: TaskId) -> Result<Option<Json>, Fault> {
        self.write_result()?;
        let Some(number) = self.number_of(id)? else { return Ok(None) };
        let text = self.first(of.get, [number], |row| {
            let reader = &mut Reader::of(row);
            let _number = reader.int()?;
            reader.read::<Option<Json>>()
        })?;
        Ok(text.flatten())
    }

    pub(super) fn write_body(&mut self, of: &Body, id: TaskId, text: Option<&Json>) -> Result<(), Fault> {
        let Some(number) = self.number_of(id)? else { return Ok(()) };
        let (inline, apart) = parted(text);
        self.execute(of.put, (number, inline))?;
        match (inline, apart) {
            // A payload that is kept apart is hidden by one in the row.
            (Some(_), _) => {}
            (None, Some(long)) => _ = self.execute(of.put_apart, (number, long))?,
            (None, None) => _ = self.execute(of.remove_apart, [number])?,
        }
        Ok(())
    }
}

impl Tables<'_> {
    pub(super) fn read_log(&mut self, id: TaskId) -> Result<Vec<LogLine>, Fault> {
        let Some(number) = self.number_of(id)? else { return Ok(Vec::new()) };
        let sql = "SELECT task, log FROM interval_queue_task_body WHERE task = ?1";
        let log = self.first(sql, [number], |row| {
            let reader = &mut Reader::of(row);
            let _number = reader.int()?;
            reader.read()
        })?;
        Ok(log.unwrap_or_default())
    }

    pub(super) fn write_log(&mut self, id: TaskId, log: &[LogLine]) -> Result<(), Fault> {
        let Some(number) = self.number_of(id)? else { return Ok(()) };
        if log.is_empty() {
            self.execute("UPDATE interval_queue_task_body SET log = NULL WHERE task = ?1", [number])?;
            return Ok(());
        }
        let sql = "INSERT INTO interval_queue_task_body (task, log) VALUES (?1, ?2) \
                   ON CONFLICT DO UPDATE SET log = excluded.log";
        self.execute(sql, (number, to_json(log)))?;
        Ok(())
    }
}

/// The part for the row of the task, and the part that is kept apart.
fn parted(text: Option<&Json>) -> (Option<&str>, Option<&str>) {
    match text.map(Json::as_str) {
        Some(long) if long.len() > MAX_INLINE_BYTES => (None, Some(long)),
        short => (short, None),
    }
}

/// Statements of a payload or a result.
pub(super) struct Body {
    get: &'static str,
    put: &'static str,
    put_apart: &'static str,
    remove_apart: &'static str,
}

// Errors name the table after the first `FROM`.
macro_rules! body {
    ($column:literal) => {
        Body {
            get: concat!(
                "SELECT number, coalesce(",
                $column,
                ", (SELECT ",
                $column,
                " from interval_queue_task_body WHERE task = ?1)) AS ",
                $column,
                " FROM interval_queue_task WHERE number = ?1"
            ),
            put: concat!("UPDATE interval_queue_task SET ", $column, " = ?2 WHERE number = ?1"),
            put_apart: concat!(
                "INSERT INTO interval_queue_task_body (task, ",
                $column,
                ") VALUES (?1, ?2) \
                 ON CONFLICT DO UPDATE SET ",
                $column,
                " = excluded.",
                $column
            ),
            remove_apart: concat!("UPDATE interval_queue_task_body SET ", $column, " = NULL WHERE task = ?1"),
        }
    };
}

pub(super) const PAYLOAD: Body = body!("payload");
pub(super) const RESULT: Body = body!("result");
