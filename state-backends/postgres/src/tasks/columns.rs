//! How the columns of declared rows are sent and selected.

use std::{borrow::Cow, sync::LazyLock};

use interval_queue_task_contract::{
    Edge, KeyRow, KindRow, Presence, Queue, Schedule, Task, TaskId,
    field::{ColumnType, Value},
    record::{Column, Record},
};
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};
use uuid::Uuid;

/// The values of one column for several rows.
pub(super) type Values = Box<dyn ToSql + Sync + Send>;

/// The SQL type of a list of values. JSON is sent as text.
pub(super) fn list(kind: ColumnType) -> (&'static str, Type) {
    match kind {
        ColumnType::Text | ColumnType::Json => ("text[]", Type::TEXT_ARRAY),
        ColumnType::Int => ("bigint[]", Type::INT8_ARRAY),
        ColumnType::Truth => ("boolean[]", Type::BOOL_ARRAY),
        ColumnType::Id => ("uuid[]", Type::UUID_ARRAY),
    }
}

/// The cast that fits a value into its column.
pub(super) fn cast(kind: ColumnType) -> &'static str {
    if kind == ColumnType::Json { "::json" } else { "" }
}

/// The values of a column.
pub(super) fn values<R: Record>(column: &Column<R>, rows: &[&R]) -> Values {
    sent(column.kind, rows.iter().map(|row| (column.value)(row)))
}

/// Values of one type as a list.
pub(super) fn sent<'v>(kind: ColumnType, all: impl Iterator<Item = Value<'v>>) -> Values {
    let number = |value| if let Value::Int(number) = value { number } else { None };
    let id = |value| if let Value::Id(id) = value { id } else { None };
    let text = |value| match value {
        Value::Text(text) | Value::Json(text) => text.map(printable),
        _ => None,
    };
    match kind {
        ColumnType::Int => Box::new(all.map(number).collect::<Vec<_>>()),
        ColumnType::Truth => Box::new(all.map(|value| value == Value::Truth(true)).collect::<Vec<_>>()),
        ColumnType::Text | ColumnType::Json => Box::new(all.map(text).collect::<Vec<_>>()),
        ColumnType::Id => Box::new(all.map(id).collect::<Vec<_>>()),
    }
}

/// PostgreSQL texts cannot contain zero bytes.
fn printable(text: Cow<'_, str>) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text.into_owned() }
}

/// The select list of a row with this alias.
fn selected<R: Record>(alias: &str) -> String {
    let name = |column: &Column<R>| match column.kind {
        ColumnType::Json => format!("{alias}.{0}::text AS {0}", column.name),
        _ => format!("{alias}.{}", column.name),
    };
    R::COLUMNS.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The select list of a task `t`.
pub(super) static SELECTED: LazyLock<String> = LazyLock::new(|| selected::<Task>("t"));
/// The select list of a queue `q`.
pub(super) static QUEUE: LazyLock<String> = LazyLock::new(|| selected::<Queue>("q"));
/// The select list of an edge `e`.
pub(super) static EDGE: LazyLock<String> = LazyLock::new(|| selected::<Edge>("e"));
/// The select list of a worker `w`.
pub(super) static WORKER: LazyLock<String> = LazyLock::new(|| selected::<Presence>("w"));
/// The select list of a kind `k`.
pub(super) static KIND: LazyLock<String> = LazyLock::new(|| selected::<KindRow>("k"));
/// The select list of a key `k`.
pub(super) static KEY: LazyLock<String> = LazyLock::new(|| selected::<KeyRow>("k"));
/// The select list of a schedule `s`.
pub(super) static SCHEDULE: LazyLock<String> = LazyLock::new(|| selected::<Schedule>("s"));

pub(super) fn ids<'t>(tasks: impl IntoIterator<Item = &'t TaskId>) -> Vec<Uuid> {
    tasks.into_iter().map(|id| id.uuid()).collect()
}

/// Names the row in errors.
pub(super) fn row_of(row: &Row) -> String {
    let at = row.columns().iter().position(|column| column.name() == "id");
    at.and_then(|at| row.try_get::<_, Uuid>(at).ok()).map_or_else(|| "?".to_owned(), |id| format!("id {id}"))
}
