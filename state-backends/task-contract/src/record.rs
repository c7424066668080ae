//! The rows of SQL stores, each declared once: its table and columns, all but the number of its queue.

use interval_queue_contract::{Label, Micros};

use crate::{
    Attempt, Edge, EdgeState, Following, Json, Key, KeyRow, Kind, KindRow, Nominal, OnFailure, Overlap,
    PolicyOverride, Presence, Progress, Queue, RebalanceCursor, Schedule, Settings, State, Stop, Tag, Task,
    TaskId, Token, Traceparent, Unique, Until, WorkerId,
    field::{ColumnType, Field, RowReader, Value, micros},
};

/// A row of a table.
pub trait Record: Sized + 'static {
    /// The table.
    const TABLE: &'static str;
    /// The columns in the order in which they are read. The first [`KEYS`](Self::KEYS) are the key.
    const COLUMNS: &'static [Column<Self>];
    /// Number of the columns of the key.
    const KEYS: usize;
    /// The names of the columns with commas between them.
    const NAMES: &'static str;

    /// Reads a row.
    #[allow(clippy::missing_errors_doc, reason = "as the reader")]
    fn read<'r, R: RowReader<'r>>(reader: &mut R) -> Result<Self, R::Error>;
}

/// A column of a row.
#[derive(Debug)]
pub struct Column<T> {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: ColumnType,
    /// Its value in a row.
    pub value: fn(&T) -> Value<'_>,
    /// Whether its values in two rows differ.
    pub differs: fn(&T, &T) -> bool,
}

/// `column: type` for fields with the name of their column, then `field: columns, how they are read`.
macro_rules! record {
    ($record:ident in $table:literal by $keys:literal {
        $first:ident: $first_type:ty $(, $name:ident: $type:ty)*
        $(; $field:ident ($($column:ident: $column_type:ty = |$x:ident| $value:expr),+)
            |$reader:ident| $read:expr)*
    }) => {
        impl Record for $record {
            const TABLE: &'static str = concat!("interval_queue_task", $table);
            const KEYS: usize = $keys;
            const NAMES: &'static str = concat!(
                stringify!($first) $(, ", ", stringify!($name))* $($(, ", ", stringify!($column))+)*
            );
            const COLUMNS: &'static [Column<Self>] = &[
                record!(column $first: $first_type),
                $(record!(column $name: $type),)*
                $($(Column {
                    name: stringify!($column),
                    kind: <$column_type as Field>::TYPE,
                    value: |$x| $value,
                    differs: |one, other| one.$field != other.$field,
                },)+)*
            ];

            fn read<'r, R: RowReader<'r>>(reader: &mut R) -> Result<Self, R::Error> {
                Ok(Self {
                    $first: reader.read()?,
                    $($name: reader.read()?,)*
                    $($field: { let $reader = &mut *reader; $read },)*
                })
            }
        }
    };
    (column $name:ident: $type:ty) => {
        Column {
            name: stringify!($name),
            kind: <$type as Field>::TYPE,
            value: |row| row.$name.value(),
            differs: |one, other| one.$name != other.$name,
        }
    };
}

record! { Task in "" by 1 {
    id: TaskId, state: State, kind: Kind, priority: i32, due: i64, added: Micros, position: u32,
    not_before: Micros, key: Option<Key>, ordered: bool, holds_key: bool, unserved: bool,
    holds_name: bool, weight: u32, tags: Vec<Tag>, deadline: Option<Micros>, policy: PolicyOverride,
    has_edges: bool, trace: Option<Traceparent>, failures: u32, retries: u32, returns: u32,
    generation: u32, worker: Option<WorkerId>, admitted: Option<Micros>, leased: Option<Micros>,
    prefetched: bool, stop: Option<Stop>, progress: Option<Progress>,
    ended_lease_clock: Option<Micros>, notified: bool, retained: bool, error: Option<String>,
    history: Vec<Attempt>;
    unique (
        unique_name: Key = |x| Value::Text(x.unique.as_ref().map(|unique| unique.name.as_str().into())),
        unique_until: Until = |x| Value::Text(x.unique.as_ref().map(|unique| unique.until.as_str().into()))
    ) |reader| {
        let (name, until) = (reader.read::<Option<_>>()?, reader.read::<Option<_>>()?.unwrap_or_default());
        name.map(|name| Unique { name, until })
    };
    schedule (
        schedule: Key = |x| Value::Text(x.schedule.as_ref().map(|nominal| nominal.schedule.as_str().into())),
        scheduled_at: Micros = |x| Value::Int(x.schedule.as_ref().map(|nominal| micros(nominal.at)))
    ) |reader| {
        let (schedule, at) = (reader.read::<Option<_>>()?, reader.read::<Option<_>>()?.unwrap_or_default());
        schedule.map(|schedule| Nominal { schedule, at })
    };
    token (
        incarnation: Micros = |x| x.token.incarnation.value(),
        attempt: u32 = |x| x.token.attempt.value()
    ) |reader| Token { incarnation: reader.read()?, attempt: reader.read()? };
    ended (ended: Option<Micros> = |x| x.ended.value()) |reader| reader.read()?
} }

record! { Queue in "_queue" by 0 {
    settings: Settings, paused: bool, paused_at: Option<Micros>, incarnation: Micros, lease_clock: Micros,
    seen: Micros, latest: Micros, maintenance_due: bool, rebalance_after: Option<RebalanceCursor>,
    followed: Option<Following>
} }

record! { Presence in "_worker" by 1 {
    worker: WorkerId, label: Label, sequence: u64, lease: Micros, ends: Micros, kinds: Vec<Kind>,
    version: u32, since: Micros, seen: Micros, busy: bool, cleared: bool, at_least: Option<i32>,
    room: Option<u32>
} }

record! { KindRow in "_kind" by 1 {
    kind: Kind, paused: bool, paused_at: Option<Micros>, served_until: Micros, open: bool,
    needs_rebalancing: bool
} }

record! { KeyRow in "_key" by 1 {
    key: Key, paused_at: Option<Micros>, needs_rebalancing: bool;
    limit (max_running: u32 = |x| x.limit.value()) |reader| reader.read()?
} }

record! { Schedule in "_schedule" by 1 {
    name: Key, revision: u64, incarnation: Micros, definition: Json, next: Option<Micros>, paused: bool,
    overlap: Overlap, last: Option<TaskId>, kept: Option<Micros>, may_follow: bool
} }

record! { Edge in "_edge" by 2 {
    up: TaskId, down: TaskId, name: Option<Key>, on_failure: OnFailure, state: EdgeState, generation: u32
} }

/// Reads a task. A task whose end and state differ is an error: it would end for ever.
#[allow(clippy::missing_errors_doc, reason = "as the reader")]
pub fn read_task<'r, R: RowReader<'r>>(reader: &mut R) -> Result<Task, R::Error> {
    let task = Task::read(reader)?;
    if task.ended.is_some() == task.state.is_ended() {
        return Ok(task);
    }
    Err(reader.bad(&format!("not what a task has that is {}", task.state)))
}

/// The columns in which two rows differ, as a bit mask.
pub fn differing<T: Record>(before: &T, after: &T) -> u64 {
    let differs = |(n, column): (usize, &Column<T>)| u64::from((column.differs)(before, after)) << n;
    T::COLUMNS.iter().enumerate().map(differs).sum()
}

/// The columns of a bit mask.
pub fn marked<T: Record>(mask: u64) -> impl Iterator<Item = &'static Column<T>> {
    T::COLUMNS.iter().enumerate().filter(move |(n, _)| mask & (1 << n) != 0).map(|(_, column)| column)
}
