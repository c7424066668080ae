//! Writes and reads the columns of a task.

use std::sync::LazyLock;

use interval_queue_contract::Micros;
use interval_queue_task_contract::{Nominal, State, Task, Token, Unique, Until};
use rusqlite::{Row, Statement};

use super::row_reader::{RowReader, json, wide};
use crate::store::Fault;

pub(super) struct Column {
    name: &'static str,
    differs: fn(&Task, &Task) -> bool,
    bind: fn(&mut Statement<'_>, usize, &Task) -> rusqlite::Result<()>,
}

/// `column: field => stored value`.
macro_rules! columns {
    ($task:ident; $($name:ident: $($field:ident).+ => $value:expr,)*) => {
        /// All columns but queue, payload and result, in the order of [`SELECTED`].
        pub(super) static COLUMNS: &[Column] = &[$(Column {
            name: stringify!($name),
            differs: |one, other| one.$($field).+ != other.$($field).+,
            bind: |statement, at, $task| statement.raw_bind_parameter(at, $value),
        }),*];
    };
}

columns! { task;
    id: id => text(task.id),
    state: state => task.state.as_str(),
    kind: kind => task.kind.as_str(),
    priority: priority => task.priority,
    due: due => task.due,
    added: added => micros(task.added),
    position: position => task.position,
    not_before: not_before => micros(task.not_before),
    key: key => task.key.as_ref().map(|key| key.as_str()),
    ordered: ordered => task.ordered,
    holds_key: holds_key => task.holds_key,
    unserved: unserved => task.unserved,
    unique_name: unique => task.unique.as_ref().map(|unique| unique.name.as_str()),
    unique_until: unique => task.unique.as_ref().map(|unique| until(unique.until)),
    holds_name: holds_name => task.holds_name,
    weight: weight => task.weight,
    tags: tags => some(&task.tags)?,
    deadline: deadline => task.deadline.map(micros),
    policy: policy => Some(&task.policy).filter(|own| !own.is_empty()).map(json).transpose()?,
    has_edges: has_edges => task.has_edges,
    schedule: schedule => task.schedule.as_ref().map(|nominal| nominal.schedule.as_str()),
    scheduled_at: schedule => task.schedule.as_ref().map(|nominal| micros(nominal.at)),
    trace: trace => task.trace.as_ref().map(|trace| trace.as_str()),
    incarnation: token.incarnation => micros(task.token.incarnation),
    attempt: token.attempt => task.token.attempt,
    failures: failures => task.failures,
    retries: retries => task.retries,
    returns: returns => task.returns,
    generation: generation => task.generation,
    worker: worker => task.worker.map(text),
    admitted: admitted => task.admitted.map(micros),
    leased: leased => task.leased.map(micros),
    prefetched: prefetched => task.prefetched,
    stop: stop => task.stop.map(|stop| stop.as_str()),
    progress: progress => task.progress.as_ref().map(json).transpose()?,
    ended: ended => task.ended.map(micros),
    ended_lease_clock: ended_lease_clock => task.ended_lease_clock.map(micros),
    notified: notified => task.notified,
    retained: retained => task.retained,
    error: error => task.error.as_deref(),
    history: history => some(&task.history)?,
}

fn text(id: impl ToString) -> String {
    id.to_string()
}

pub(super) fn micros(at: Micros) -> i64 {
    wide(at.get())
}

fn until(until: Until) -> &'static str {
    match until {
        Until::Ended => "ended",
        Until::Leased => "leased",
    }
}

/// The list as JSON. `None`: it is empty.
fn some<T: serde::Serialize>(list: &[T]) -> rusqlite::Result<Option<String>> {
    (!list.is_empty()).then(|| json(list)).transpose()
}

/// The number and all columns.
pub(super) static SELECTED: LazyLock<String> = LazyLock::new(|| {
    let mut names = "number".to_owned();
    for column in COLUMNS {
        names.push_str(", ");
        names.push_str(column.name);
    }
    names
});

/// Parameters: the queue, the payload and all columns.
pub(super) static INSERT: LazyLock<String> = LazyLock::new(|| {
    let names: String = COLUMNS.iter().map(|column| format!(", {}", column.name)).collect();
    let values: String = (0..COLUMNS.len()).map(|n| format!(", ?{}", n + 3)).collect();
    format!("INSERT INTO interval_queue_task (queue, payload{names}) VALUES (?1, ?2{values})")
});

/// Starts at parameter `first`.
pub(super) fn bind_all(statement: &mut Statement<'_>, first: usize, task: &Task) -> rusqlite::Result<()> {
    COLUMNS.iter().enumerate().try_for_each(|(n, column)| (column.bind)(statement, first + n, task))
}

/// The columns in which two tasks differ, as a bit mask.
pub(super) fn differing(before: &Task, after: &Task) -> u64 {
    let differs = |(n, column): (usize, &Column)| u64::from((column.differs)(before, after)) << n;
    COLUMNS.iter().enumerate().map(differs).sum()
}

/// A bit above those of the columns.
pub(super) const RESULT: u64 = 1 << 63;

/// Updates only the marked columns, since SQLite updates every index with one of the columns.
/// Parameters: the number, then the columns.
pub(super) fn update(mask: u64) -> String {
    let result = (mask & RESULT != 0).then_some("result");
    let names = marked(mask).map(|column| column.name).chain(result);
    let set: Vec<_> = names.enumerate().map(|(n, name)| format!("{name} = ?{}", n + 2)).collect();
    format!("UPDATE interval_queue_task SET {} WHERE number = ?1", set.join(", "))
}

/// Starts at the second parameter. Returns the next parameter.
pub(super) fn bind_marked(statement: &mut Statement<'_>, mask: u64, task: &Task) -> rusqlite::Result<usize> {
    let mut next = 2;
    for column in marked(mask) {
        (column.bind)(statement, next, task)?;
        next += 1;
    }
    Ok(next)
}

fn marked(mask: u64) -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().enumerate().filter(move |(n, _)| mask & (1 << n) != 0).map(|(_, column)| column)
}

/// Requires the columns [`SELECTED`].
pub(super) fn read(row: &Row<'_>) -> Result<(i64, Task), Fault> {
    let reader = &mut RowReader::of(row);
    let (number, id) = (reader.int()?, reader.named("no task id")?);
    let state: State = reader.named("no state")?;
    let task = Task {
        id,
        state,
        kind: reader.named("no kind")?,
        priority: reader.number()?,
        due: reader.int()?,
        added: reader.micros()?,
        position: reader.number()?,
        not_before: reader.micros()?,
        key: reader.some("no key")?,
        ordered: reader.truth()?,
        holds_key: reader.truth()?,
        unserved: reader.truth()?,
        unique: {
            let name = reader.some("no unique name")?;
            let until = reader.word()?.unwrap_or_default();
            name.map(|name| Unique { name, until })
        },
        holds_name: reader.truth()?,
        weight: reader.number()?,
        tags: reader.json()?,
        deadline: reader.some_micros()?,
        policy: reader.json()?,
        has_edges: reader.truth()?,
        schedule: {
            let schedule = reader.some("no name of a schedule")?;
            let at = reader.some_micros()?.unwrap_or_default();
            schedule.map(|schedule| Nominal { schedule, at })
        },
        trace: reader.some("no traceparent")?,
        token: Token { incarnation: reader.micros()?, attempt: reader.number()? },
        failures: reader.number()?,
        retries: reader.number()?,
        returns: reader.number()?,
        generation: reader.number()?,
        worker: reader.some("no worker id")?,
        admitted: reader.some_micros()?,
        leased: reader.some_micros()?,
        prefetched: reader.truth()?,
        stop: reader.word()?,
        progress: reader.json()?,
        ended: {
            let ended = reader.some_micros()?;
            // The row would be reported as ended forever.
            if ended.is_some() != state.is_ended() {
                return Err(reader.bad(&format!("not what a task has that is {state}")));
            }
            ended
        },
        ended_lease_clock: reader.some_micros()?,
        notified: reader.truth()?,
        retained: reader.truth()?,
        error: reader.some_text()?.map(Into::into),
        history: reader.json()?,
    };
    Ok((number, task))
}
