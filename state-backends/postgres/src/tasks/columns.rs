//! Writes and reads the columns of a task.

use std::sync::LazyLock;

use interval_queue_contract::StateError;
use interval_queue_task_contract::{Nominal, State, Task, TaskId, Token, Unique, Until, WorkerId};
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};
use uuid::Uuid;

use super::row_reader::{RowReader, json, micros};

/// The values of one column for several tasks.
pub(super) type Values = Box<dyn ToSql + Sync + Send>;

pub(super) struct Column {
    pub(super) name: &'static str,
    /// Determines how lists of values are sent.
    pub(super) kind: Kind,
    pub(super) differs: fn(&Task, &Task) -> bool,
    pub(super) values: fn(&[&Task]) -> Values,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Int,
    Truth,
    Id,
    Json,
    Jsonb,
}

impl Kind {
    pub(super) fn one(self) -> &'static str {
        self.list().0.trim_end_matches("[]")
    }

    pub(super) fn list(self) -> (&'static str, Type) {
        match self {
            Self::Text | Self::Json | Self::Jsonb => ("text[]", Type::TEXT_ARRAY),
            Self::Int => ("bigint[]", Type::INT8_ARRAY),
            Self::Truth => ("boolean[]", Type::BOOL_ARRAY),
            Self::Id => ("uuid[]", Type::UUID_ARRAY),
        }
    }

    pub(super) fn cast(self) -> &'static str {
        match self {
            Self::Json => "::json",
            Self::Jsonb => "::jsonb",
            _ => "",
        }
    }
}

/// `column, how it is sent: field => stored value`.
macro_rules! columns {
    ($task:ident; $($name:ident $kind:ident: $($field:ident).+ => $value:expr,)*) => {
        /// All columns but queue, payload and result, in the order of [`SELECTED`].
        pub(super) static COLUMNS: &[Column] = &[$(Column {
            name: stringify!($name),
            kind: Kind::$kind,
            differs: |one, other| one.$($field).+ != other.$($field).+,
            values: |tasks| Box::new(tasks.iter().map(|$task| $value).collect::<Vec<_>>()),
        }),*];
    };
}

columns! { task;
    id Id: id => task.id.uuid(),
    state Text: state => task.state.as_str(),
    kind Text: kind => task.kind.as_str().to_owned(),
    priority Int: priority => i64::from(task.priority),
    due Int: due => task.due,
    added Int: added => micros(task.added),
    position Int: position => i64::from(task.position),
    not_before Int: not_before => micros(task.not_before),
    key Text: key => task.key.as_ref().map(|key| key.as_str().to_owned()),
    ordered Truth: ordered => task.ordered,
    holds_key Truth: holds_key => task.holds_key,
    unserved Truth: unserved => task.unserved,
    unique_name Text: unique => task.unique.as_ref().map(|unique| unique.name.as_str().to_owned()),
    unique_until Text: unique => task.unique.as_ref().map(|unique| until(unique.until)),
    holds_name Truth: holds_name => task.holds_name,
    weight Int: weight => i64::from(task.weight),
    tags Jsonb: tags => some(&task.tags),
    deadline Int: deadline => task.deadline.map(micros),
    policy Json: policy => Some(&task.policy).filter(|own| !own.is_empty()).map(json),
    has_edges Truth: has_edges => task.has_edges,
    schedule Text: schedule => task.schedule.as_ref().map(|nominal| nominal.schedule.as_str().to_owned()),
    scheduled_at Int: schedule => task.schedule.as_ref().map(|nominal| micros(nominal.at)),
    trace Text: trace => task.trace.as_ref().map(|trace| trace.as_str().to_owned()),
    incarnation Int: token.incarnation => micros(task.token.incarnation),
    attempt Int: token.attempt => i64::from(task.token.attempt),
    failures Int: failures => i64::from(task.failures),
    retries Int: retries => i64::from(task.retries),
    returns Int: returns => i64::from(task.returns),
    generation Int: generation => i64::from(task.generation),
    worker Id: worker => task.worker.map(WorkerId::uuid),
    admitted Int: admitted => task.admitted.map(micros),
    leased Int: leased => task.leased.map(micros),
    prefetched Truth: prefetched => task.prefetched,
    stop Text: stop => task.stop.map(|stop| stop.as_str()),
    progress Json: progress => task.progress.as_ref().map(json),
    ended Int: ended => task.ended.map(micros),
    ended_lease_clock Int: ended_lease_clock => task.ended_lease_clock.map(micros),
    notified Truth: notified => task.notified,
    retained Truth: retained => task.retained,
    error Text: error => task.error.as_deref().map(printable),
    history Json: history => some(&task.history),
}

fn until(until: Until) -> &'static str {
    match until {
        Until::Ended => "ended",
        Until::Leased => "leased",
    }
}

/// PostgreSQL texts cannot contain zero bytes.
fn printable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// The list as JSON. `None`: it is empty.
fn some<T: serde::Serialize>(list: &[T]) -> Option<String> {
    (!list.is_empty()).then(|| json(list))
}

/// All columns of a task `t`.
pub(super) static SELECTED: LazyLock<String> = LazyLock::new(|| {
    let name = |column: &Column| match column.kind {
        Kind::Json | Kind::Jsonb => format!("t.{0}::text AS {0}", column.name),
        _ => format!("t.{}", column.name),
    };
    COLUMNS.iter().map(name).collect::<Vec<_>>().join(", ")
});

/// The columns in which two tasks differ, as a bit mask.
pub(super) fn differing(before: &Task, after: &Task) -> u64 {
    let differs = |(n, column): (usize, &Column)| u64::from((column.differs)(before, after)) << n;
    COLUMNS.iter().enumerate().map(differs).sum()
}

pub(super) fn marked(mask: u64) -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().enumerate().filter(move |(n, _)| mask & (1 << n) != 0).map(|(_, column)| column)
}

/// Requires the columns [`SELECTED`].
pub(super) fn read(reader: &mut RowReader<'_>) -> Result<Task, StateError> {
    let id = TaskId::new(reader.id()?);
    let state: State = reader.named("no state")?;
    Ok(Task {
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
        worker: reader.some_id()?.map(WorkerId::new),
        admitted: reader.some_micros()?,
        leased: reader.some_micros()?,
        prefetched: reader.truth()?,
        stop: reader.word()?,
        progress: reader.json()?,
        ended: {
            let ended = reader.some_micros()?;
            // The row would be reported as ended forever.
            if ended.is_some() != state.is_ended() {
                return Err(reader.bad(&ended, &format!("not what a task has that is {state}")));
            }
            ended
        },
        ended_lease_clock: reader.some_micros()?,
        notified: reader.truth()?,
        retained: reader.truth()?,
        error: reader.some_text()?.map(Into::into),
        history: reader.json()?,
    })
}

pub(super) fn ids<'t>(tasks: impl IntoIterator<Item = &'t TaskId>) -> Vec<Uuid> {
    tasks.into_iter().map(|id| id.uuid()).collect()
}

/// Names the row in errors.
pub(super) fn row_of(row: &Row) -> String {
    let at = row.columns().iter().position(|column| column.name() == "id");
    at.and_then(|at| row.try_get::<_, Uuid>(at).ok()).map_or_else(|| "?".to_owned(), |id| format!("id {id}"))
}
