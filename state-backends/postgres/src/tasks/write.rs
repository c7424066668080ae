//! SQL for all written rows: one statement for all rows with the same changed columns.

use std::{borrow::Cow, collections::BTreeMap, sync::LazyLock};

use interval_queue_task_contract::{
    Edge, Json, KindRow, Queue, Task, TaskId, Took,
    field::{ColumnType as Kind, Field, Value, micros, to_json},
    record::{Record, differing, marked},
};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::{
    columns::{self, Values, cast, list},
    view::{Change, Written},
};
use crate::store::Query;

/// Bits above those of the columns.
const PAYLOAD: u64 = 1 << 61;
const RESULT: u64 = 1 << 62;
const LOG: u64 = 1 << 63;

const MAX_FOLDED_ROWS: u32 = 5_000;

/// Columns of rows of one table.
struct Rows {
    columns: Vec<(&'static str, Kind, Values)>,
}

impl Rows {
    fn new() -> Self {
        Self { columns: Vec::new() }
    }

    /// All columns of these rows.
    fn of<R: Record>(rows: &[&R]) -> Self {
        let columns = R::COLUMNS.iter();
        Self { columns: columns.map(|it| (it.name, it.kind, columns::values(it, rows))).collect() }
    }

    fn with(mut self, name: &'static str, kind: Kind, values: impl ToSql + Sync + Send + 'static) -> Self {
        self.columns.push((name, kind, Box::new(values)));
        self
    }

    /// `unnest(…) AS n (…)`, and the names of the columns.
    fn from(&self) -> (String, Vec<&'static str>) {
        let lists: Vec<String> = self
            .columns
            .iter()
            .enumerate()
            .map(|(n, (_, kind, _))| format!("${}::{}", n + 2, list(*kind).0))
            .collect();
        let names: Vec<&str> = self.columns.iter().map(|&(name, ..)| name).collect();
        (format!("unnest({}) AS n ({})", lists.join(", "), names.join(", ")), names)
    }

    fn values(&self) -> Vec<String> {
        self.columns.iter().map(|(name, kind, _)| format!("n.{name}{}", cast(*kind))).collect()
    }

    fn query(self, queue: i64, sql: String) -> Query {
        let query = Query::new(sql).with(queue, Type::INT8);
        self.columns
            .into_iter()
            .fold(query, |query, (_, kind, values)| query.with_boxed(values, list(kind).1))
    }

    fn insert(self, queue: i64, table: &str) -> Query {
        self.insert_or(queue, table, "")
    }

    fn insert_or(self, queue: i64, table: &str, conflict: &str) -> Query {
        let (from, names) = self.from();
        let (names, values) = (names.join(", "), self.values().join(", "));
        self.query(
            queue,
            format!("INSERT INTO {table} (queue, {names}) SELECT $1, {values} FROM {from}{conflict}"),
        )
    }

    /// The first column is the key.
    fn upsert(self, queue: i64, table: &str) -> Query {
        let mut names = self.columns.iter().map(|&(name, ..)| name);
        let key = names.next().unwrap_or_default();
        let set: Vec<String> = names.map(|name| format!("{name} = excluded.{name}")).collect();
        let conflict = format!(" ON CONFLICT (queue, {key}) DO UPDATE SET {}", set.join(", "));
        self.insert_or(queue, table, &conflict)
    }

    /// The first `keys` columns are the key.
    fn update(self, queue: i64, table: &str, keys: usize) -> Query {
        let (from, names) = self.from();
        let set: Vec<String> = names
            .iter()
            .zip(self.values())
            .skip(keys)
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        let (set, rows) = (set.join(", "), matching_row(table, names.iter().take(keys)));
        self.query(queue, format!("UPDATE {table} AS t SET {set} FROM {from}, {rows}{ROW_CONDITION}"))
    }

    /// All columns are the key.
    fn delete(self, queue: i64, table: &str) -> Query {
        let (from, names) = self.from();
        let rows = matching_row(table, names.iter());
        self.query(queue, format!("DELETE FROM {table} AS t USING {from}, {rows}{ROW_CONDITION}"))
    }
}

/// The end of a statement that writes the rows of [`matching_row`].
const ROW_CONDITION: &str = " WHERE t.ctid = r.ctid";

/// The row `r` of each `n`. The server might run a join as a scan of the table while it is small,
/// and keep that plan. A row that somebody changes by hand between this and the write is skipped:
/// unless the rows were locked before, they must be [`counted`].
fn matching_row<'n>(table: &str, names: impl Iterator<Item = &'n &'static str>) -> String {
    let same: Vec<String> = names.map(|name| format!("r.{name} = n.{name}")).collect();
    let same = same.join(" AND ");
    format!("LATERAL (SELECT r.ctid FROM {table} AS r WHERE r.queue = $1 AND {same} OFFSET 0) AS r")
}

pub(super) fn statements(queue: i64, written: &Written, folds: bool) -> Vec<Query> {
    let mut all = Vec::new();
    tasks(queue, written, &mut all);
    edges(queue, written, &mut all);
    upsert_or_delete(queue, &written.presences, &mut all);
    let kinds: Vec<_> = written.kinds.values().collect();
    if !kinds.is_empty() {
        all.push(Rows::of(&kinds).upsert(queue, KindRow::TABLE));
    }
    upsert_or_delete(queue, &written.keys, &mut all);
    upsert_or_delete(queue, &written.schedules, &mut all);
    counts(queue, written, &mut all);
    if folds {
        all.push(Query::new(FOLD.as_str()).with(queue, Type::INT8));
    }
    all
}

/// Writes rows, or deletes those that are `None`. Their first column is the key.
fn upsert_or_delete<K: Field, R: Record>(queue: i64, written: &BTreeMap<K, Option<R>>, all: &mut Vec<Query>) {
    let some: Vec<&R> = written.values().flatten().collect();
    if !some.is_empty() {
        all.push(Rows::of(&some).upsert(queue, R::TABLE));
    }
    let gone = written.iter().filter(|(_, row)| row.is_none());
    let gone: Vec<Value<'_>> = gone.map(|(key, _)| key.value()).collect();
    if let (Some(column), false) = (R::COLUMNS.first(), gone.is_empty()) {
        let rows = Rows { columns: vec![(column.name, K::TYPE, columns::sent(K::TYPE, gone.into_iter()))] };
        all.push(rows.delete(queue, R::TABLE));
    }
}

/// Makes a statement fail with a division by zero if it does not write all rows. The first list
/// must have one value for each row.
pub(super) fn counted(statement: Query) -> Query {
    if !statement.sql.ends_with(ROW_CONDITION) {
        return statement;
    }
    let sql = &statement.sql;
    let sql =
        format!("WITH t AS ({sql} RETURNING 1) SELECT 1 / (count(*) = cardinality($2))::integer FROM t");
    Query { sql: sql.into(), ..statement }
}

pub(super) fn at_once(statements: Vec<Query>) -> Query {
    Query::fused(statements, |mut texts| {
        let last = texts.pop().unwrap_or_default();
        let others: Vec<String> =
            texts.iter().enumerate().map(|(n, text)| format!("w{n} AS ({text})")).collect();
        if others.is_empty() { last } else { format!("WITH {} {last}", others.join(", ")) }
    })
}

/// Returns the number; no row if the queue exists.
pub(super) fn make_queue(name: &str, queue: &Queue) -> Query {
    let values: Vec<String> =
        Queue::COLUMNS.iter().zip(2..).map(|(it, n)| format!("${n}{}", cast(it.kind))).collect();
    let sql = format!(
        "INSERT INTO {} (name, {}) VALUES ($1, {}) ON CONFLICT DO NOTHING RETURNING number",
        Queue::TABLE,
        Queue::NAMES,
        values.join(", ")
    );
    with_queue(Query::new(sql).with(name.to_owned(), Type::TEXT), queue)
}

pub(super) fn put_queue(number: i64, queue: &Queue) -> Query {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        let set =
            Queue::COLUMNS.iter().zip(2..).map(|(it, n)| format!("{} = ${n}{}", it.name, cast(it.kind)));
        format!("UPDATE {} SET {} WHERE number = $1", Queue::TABLE, set.collect::<Vec<_>>().join(", "))
    });
    with_queue(Query::new(SQL.as_str()).with(number, Type::INT8), queue)
}

fn with_queue(query: Query, queue: &Queue) -> Query {
    Queue::COLUMNS.iter().fold(query, |query, column| match (column.value)(queue) {
        Value::Int(number) => query.with(number, Type::INT8),
        Value::Truth(flag) => query.with(flag, Type::BOOL),
        Value::Text(text) | Value::Json(text) => query.with(text.map(Cow::into_owned), Type::TEXT),
        Value::Id(id) => query.with(id, Type::UUID),
    })
}

fn tasks(queue: i64, written: &Written, all: &mut Vec<Query>) {
    let mut gone = Vec::new();
    let mut new = Vec::new();
    let mut changed: BTreeMap<u64, Vec<TaskId>> = BTreeMap::new();
    for (id, change) in written.tasks() {
        match change {
            Change { before: None, after: Some(task) } => new.push(task),
            Change { before: Some(before), after: Some(after) } => {
                let mask = differing(before, after) | bodies(written, id);
                if mask != 0 {
                    changed.entry(mask).or_default().push(id);
                }
            }
            Change { before: Some(_), after: None } => gone.push(id.uuid()),
            Change { before: None, after: None } => {}
        }
    }
    let body_only = written.payloads.keys().chain(written.results.keys()).chain(written.logs.keys());
    for &id in body_only.filter(|id| written.task(**id).is_none()) {
        let some = changed.entry(bodies(written, id)).or_default();
        if !some.contains(&id) {
            some.push(id);
        }
    }
    if !gone.is_empty() {
        all.push(Rows::new().with("id", Kind::Id, gone).delete(queue, Task::TABLE));
    }
    // One statement for all tasks whose bodies stay: it costs more than the unchanged columns that it
    // writes.
    let (with_bodies, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
        changed.into_iter().partition(|(mask, _)| mask & (PAYLOAD | RESULT | LOG) != 0);
    let mask = others.keys().fold(0, |all, mask| all | mask);
    let ids: Vec<TaskId> = others.into_values().flatten().collect();
    let others = (!ids.is_empty()).then_some((mask, ids));
    for (mask, ids) in with_bodies.into_iter().chain(others) {
        all.push(changed_tasks(written, mask, &ids).update(queue, Task::TABLE, Task::KEYS));
    }
    if !new.is_empty() {
        // In the order in which tasks are leased and read.
        new.sort_by_key(|task| task.order());
        all.push(new_tasks(written, &new).insert(queue, Task::TABLE));
    }
}

/// Payload, result and log.
fn bodies(written: &Written, id: TaskId) -> u64 {
    let payload = if written.payloads.contains_key(&id) { PAYLOAD } else { 0 };
    let result = if written.results.contains_key(&id) { RESULT } else { 0 };
    payload | result | if written.logs.contains_key(&id) { LOG } else { 0 }
}

fn bodies_of(of: &BTreeMap<TaskId, Option<Json>>, ids: impl Iterator<Item = TaskId>) -> Vec<Option<String>> {
    ids.map(|id| of.get(&id).and_then(Option::as_ref).map(|json| json.as_str().to_owned())).collect()
}

fn logs_of(written: &Written, ids: impl Iterator<Item = TaskId>) -> Vec<Option<String>> {
    ids.map(|id| written.logs.get(&id).filter(|log| !log.is_empty()).map(to_json)).collect()
}

fn changed_tasks(written: &Written, mask: u64, ids: &[TaskId]) -> Rows {
    let after = |id: &TaskId| written.task(*id).and_then(|change| change.after.as_ref());
    let tasks: Vec<&Task> = ids.iter().filter_map(after).collect();
    let mut rows = Rows::new().with("id", Kind::Id, columns::ids(ids));
    for column in marked(mask & !(PAYLOAD | RESULT | LOG)) {
        rows.columns.push((column.name, column.kind, columns::values(column, &tasks)));
    }
    if mask & PAYLOAD != 0 {
        rows = rows.with("payload", Kind::Json, bodies_of(&written.payloads, ids.iter().copied()));
    }
    if mask & RESULT != 0 {
        rows = rows.with("result", Kind::Json, bodies_of(&written.results, ids.iter().copied()));
    }
    if mask & LOG != 0 {
        rows = rows.with("log", Kind::Json, logs_of(written, ids.iter().copied()));
    }
    rows
}

/// All columns have the table's defaults.
static BLANK: LazyLock<Task> = LazyLock::new(|| Task::bare(TaskId::FIRST));

/// Columns without a default.
const NEEDED: [&str; 5] = ["id", "state", "kind", "due", "added"];

fn new_tasks(written: &Written, tasks: &[&Task]) -> Rows {
    let mask = tasks.iter().fold(0, |mask, task| mask | differing::<Task>(&BLANK, task));
    let mut rows = Rows::new();
    for (n, column) in Task::COLUMNS.iter().enumerate() {
        if mask & (1 << n) != 0 || NEEDED.contains(&column.name) {
            rows.columns.push((column.name, column.kind, columns::values(column, tasks)));
        }
    }
    let ids = || tasks.iter().map(|task| task.id);
    rows = rows.with("payload", Kind::Json, bodies_of(&written.payloads, ids()));
    if ids().any(|id| written.results.contains_key(&id)) {
        rows = rows.with("result", Kind::Json, bodies_of(&written.results, ids()));
    }
    if ids().any(|id| written.logs.contains_key(&id)) {
        rows = rows.with("log", Kind::Json, logs_of(written, ids()));
    }
    rows
}

fn edges(queue: i64, written: &Written, all: &mut Vec<Query>) {
    let (mut new, mut changed, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    for (ends, change) in &written.edges {
        match change {
            Change { before: None, after: Some(edge) } => new.push(edge),
            Change { before: Some(_), after: Some(edge) } => changed.push(edge),
            Change { before: Some(_), after: None } => gone.push(ends),
            Change { before: None, after: None } => {}
        }
    }
    if !gone.is_empty() {
        let up: Vec<Uuid> = gone.iter().map(|(up, _)| up.uuid()).collect();
        let down: Vec<Uuid> = gone.iter().map(|(_, down)| down.uuid()).collect();
        all.push(
            Rows::new().with("up", Kind::Id, up).with("down", Kind::Id, down).delete(queue, Edge::TABLE),
        );
    }
    if !changed.is_empty() {
        all.push(Rows::of(&changed).update(queue, Edge::TABLE, Edge::KEYS));
    }
    if !new.is_empty() {
        all.push(Rows::of(&new).insert(queue, Edge::TABLE));
    }
}

macro_rules! column {
    ($rows:ident, $row:ident => $value:expr) => {
        $rows.iter().map(|$row| $value).collect::<Vec<_>>()
    };
}

/// Stores events after the changes of the tasks: the events of a task are in the order in which its
/// row was locked. Without the lock of the queue, they are stored in another table, and a trigger
/// publishes them with the commit.
pub(super) fn events(queue: i64, written: &Written, is_locked: bool) -> Vec<Query> {
    let mut all = Vec::new();
    let some = &written.events;
    if !some.is_empty() {
        let rows = Rows::new().with("at", Kind::Int, column!(some, x => micros(x.at))).with(
            "event",
            Kind::Json,
            column!(some, x => to_json(x)),
        );
        let table = if is_locked { "interval_queue_task_event" } else { "interval_queue_task_event_late" };
        all.push(rows.insert(queue, table));
    }
    if let Some((before, limit)) = written.first_event {
        let sql = "DELETE FROM interval_queue_task_event WHERE queue = $1 AND number = ANY (ARRAY(\
                   SELECT number FROM interval_queue_task_event WHERE queue = $1 AND number < coalesce((\
                   SELECT number FROM (SELECT number, at FROM interval_queue_task_event WHERE queue = $1 \
                   ORDER BY number LIMIT $3) AS f WHERE at >= $2 ORDER BY number LIMIT 1), \
                   9223372036854775807) ORDER BY number LIMIT $3))";
        let query = Query::new(sql).with(queue, Type::INT8).with(micros(before), Type::INT8);
        all.push(query.with(i64::from(limit), Type::INT8));
    }
    all
}

/// Inserts rows of their own, so that no command waits for another.
fn counts(queue: i64, written: &Written, all: &mut Vec<Query>) {
    let counts = written.counts.iter().filter(|&(_, &more)| more != 0);
    let counts = counts.map(|((kind, counted), &more)| (kind, counted.as_str().to_owned(), more));
    let times = written.times.iter().map(|((kind, took), &more)| (kind, took.name(), more.cast_signed()));
    let some: Vec<_> = counts.chain(times).collect();
    if let Some((hours, days)) = written.first_times {
        let with_hours =
            |sql: String| Query::new(sql).with(queue, Type::INT8).with(i64::from(hours), Type::INT8);
        let (first, end) = Took::EVENT_CELLS;
        all.push(with_hours(format!(
            "INSERT INTO interval_queue_task_times AS c (queue, kind, hour, cell, number) \
             SELECT queue, kind, hour / 24 * 24, cell + {end} - {first}, sum(number)::bigint \
             FROM interval_queue_task_times WHERE queue = $1 AND hour < $2 AND cell >= {first} AND cell < {end} \
             GROUP BY queue, kind, hour / 24, cell \
             ON CONFLICT (queue, kind, hour, cell) DO UPDATE SET number = c.number + excluded.number"
        )));
        let sql = format!(
            "DELETE FROM interval_queue_task_times \
             WHERE queue = $1 AND hour < $2 AND hour < CASE WHEN cell < {end} THEN $2 ELSE $3 END"
        );
        all.push(with_hours(sql).with(i64::from(days), Type::INT8));
    }
    if some.is_empty() {
        return;
    }
    let sql = "INSERT INTO interval_queue_task_counted (queue, kinds, counted, more) VALUES ($1, $2, $3, $4)";
    let query = Query::new(sql)
        .with(queue, Type::INT8)
        .with(column!(some, x => x.0.to_string()), Type::TEXT_ARRAY)
        .with(column!(some, x => x.1.clone()), Type::TEXT_ARRAY)
        .with(column!(some, x => x.2), Type::INT8_ARRAY);
    all.push(query);
}

/// Runs in one transaction at a time. Uncommitted counts are left to the next.
static FOLD: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH gone AS (DELETE FROM interval_queue_task_counted AS c WHERE c.queue = $1 AND c.number = ANY (ARRAY(\
         SELECT number FROM interval_queue_task_counted WHERE queue = $1 ORDER BY number LIMIT {MAX_FOLDED_ROWS})) \
         RETURNING c.kinds, c.counted, c.more), \
         sums AS (SELECT d.kind, d.counted, sum(d.more)::bigint AS more FROM gone, \
         unnest(gone.kinds, gone.counted, gone.more) AS d (kind, counted, more) GROUP BY d.kind, d.counted), \
         took AS (INSERT INTO interval_queue_task_times AS c (queue, kind, hour, cell, number) \
         SELECT $1, kind, split_part(counted, ' ', 2)::bigint, split_part(counted, ' ', 3)::bigint, more FROM sums \
         WHERE counted LIKE 'took %' \
         ON CONFLICT (queue, kind, hour, cell) DO UPDATE SET number = c.number + excluded.number) \
         INSERT INTO interval_queue_task_count AS c (queue, kind, counted, number) \
         SELECT $1, kind, counted, more FROM sums WHERE counted NOT LIKE 'took %' \
         ON CONFLICT (queue, kind, counted) DO UPDATE SET number = c.number + excluded.number"
    )
});
