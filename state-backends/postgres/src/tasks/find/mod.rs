//! Lookups in SQL: one statement for all lookups of a kind.
//!
//! Table names have no schema: each transaction sets its search path. Settings leave the server
//! only plans with an index, see `tasks/mod.rs`; conditions repeat those of the index, which
//! selects it.

mod edges;
mod existence_probe;
pub(super) mod others;
mod selection;
mod tasks;
#[cfg(test)]
#[path = "../../../tests/unit/find_unit.rs"]
mod tests;

use std::{collections::HashMap, mem::discriminant, sync::LazyLock};

use interval_queue_contract::{StateError, StateErrorKind};
use interval_queue_task_contract::{
    Task,
    field::RowReader as _,
    index::{self, Declared},
    record::Record,
};
use tokio_postgres::{Row, types::Type};

use super::{
    columns,
    row_reader::Reader,
    view::{Lookup, LookupResult, ReadSet, Target},
};
use crate::store::Query;

static DECLARED: LazyLock<Vec<Declared>> = LazyLock::new(index::declared);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Locks {
    /// The transaction only reads, or excludes other writers.
    None,
    /// Upstreams of added tasks, which must not be deleted.
    KeyShare,
    /// The polling worker, the tasks that it names, and ready tasks that are not locked.
    Own,
    /// Selected tasks that will be deleted. No downstream can be added to them.
    Update,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    pub(super) queue: i64,
    pub(super) locks: Locks,
    pub(super) writes: bool,
    /// The rules have not asked for the rows yet.
    pub(super) is_read_ahead: bool,
    /// Lookups of ready tasks begin at [low-water marks](super::low_marks).
    pub(super) has_low_marks: bool,
}

/// A statement for several lookups, and how to add its rows to the read set.
pub(super) struct LookupQuery {
    pub(super) query: Query,
    shape: RowShape,
    add_rows: Box<AddRows>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowShape {
    /// The number of the lookup, and a task.
    Tasks,
    /// The number of the lookup, a task, and its payload.
    Payloads,
    Others,
}

type AddRows = dyn Fn(&[&Row], &mut ReadSet) -> Result<(), StateError> + Send + Sync;

impl LookupQuery {
    pub(super) fn add_rows(&self, rows: &[Row], read_set: &mut ReadSet) -> Result<(), StateError> {
        (self.add_rows)(&rows.iter().collect::<Vec<_>>(), read_set)
    }

    fn tasks(self) -> Self {
        Self { shape: RowShape::Tasks, ..self }
    }
}

/// A poll under the shared lock replaces rare lookups by an existence probe.
pub(super) fn lookup_queries(scope: Scope, mut lookups: Vec<Lookup>) -> Vec<LookupQuery> {
    let probed: Vec<Lookup> = match scope.is_read_ahead && scope.locks == Locks::Own {
        true => lookups.extract_if(.., |lookup| existence_probe::has_probe(lookup)).collect(),
        false => Vec::new(),
    };
    let mut alike: Vec<Vec<Lookup>> = Vec::new();
    let mut groups = HashMap::new();
    for lookup in lookups {
        let index = if let Target::Look(number, _) = lookup.target { Some(number) } else { None };
        let at = *groups.entry((discriminant(&lookup.target), index)).or_insert_with(|| {
            alike.push(Vec::new());
            alike.len() - 1
        });
        if let Some(group) = alike.get_mut(at) {
            group.push(lookup);
        }
    }
    let mut all: Vec<LookupQuery> = alike.into_iter().flat_map(|lookups| group(scope, lookups)).collect();
    if let Some(at) = all.iter().position(|lookup_query| lookup_query.shape != RowShape::Others) {
        let (of_tasks, others): (Vec<_>, Vec<_>) =
            all.split_off(at).into_iter().partition(|lookup_query| lookup_query.shape != RowShape::Others);
        all.push(fused(of_tasks));
        all.extend(others);
    }
    if !probed.is_empty() {
        all.push(existence_probe::probe(scope, probed));
    }
    all
}

/// One statement for all lookups of tasks, since its overhead exceeds the cost of its rows. Its
/// parts run, and lock rows, in order.
fn fused(lookup_queries: Vec<LookupQuery>) -> LookupQuery {
    let (mut queries, mut add_rows, mut shape) = (Vec::new(), Vec::new(), Vec::new());
    for lookup_query in lookup_queries {
        queries.push(lookup_query.query);
        add_rows.push(lookup_query.add_rows);
        shape.push(lookup_query.shape);
    }
    let query = Query::fused(queries, |texts| {
        let arms = texts.iter().zip(shape).enumerate().map(|(n, (text, shape))| {
            let payload = if shape == RowShape::Tasks { ", NULL::text" } else { "" };
            format!("SELECT s.*{payload}, {n}::bigint AS part FROM ({text}) AS s")
        });
        arms.collect::<Vec<_>>().join(" UNION ALL ")
    });
    let add_rows = move |rows: &[&Row], read_set: &mut ReadSet| {
        let mut answers: Vec<Vec<&Row>> = add_rows.iter().map(|_| Vec::new()).collect();
        for row in rows {
            let part: i64 = row.try_get(row.len() - 1).unwrap_or(-1);
            let answer = usize::try_from(part).ok().and_then(|part| answers.get_mut(part));
            answer.into_iter().for_each(|answer| answer.push(row));
        }
        add_rows.iter().zip(answers).try_for_each(|(add_rows, answer)| add_rows(&answer, read_set))
    };
    LookupQuery { query, shape: RowShape::Others, add_rows: Box::new(add_rows) }
}

fn group(scope: Scope, lookups: Vec<Lookup>) -> Vec<LookupQuery> {
    let Some(first) = lookups.first() else { return Vec::new() };
    match first.target {
        // Already read with the lock.
        Target::Queue => Vec::new(),
        Target::Task(_) | Target::Payload(_) | Target::Result(_) | Target::Log(_) => {
            vec![tasks::named(scope, lookups)]
        }
        Target::LeasedOfKey(_)
        | Target::Holders(_)
        | Target::OrderedHolders(_)
        | Target::LastReadyHolder(_)
        | Target::Blocked(_) => vec![tasks::of_keys(scope, lookups)],
        Target::Look(number, _) => vec![tasks::look(scope, number, lookups)],
        Target::From(..) | Target::UnnotifiedFrom(..) | Target::To(..) | Target::Pending(_) => {
            vec![edges::edges(scope, lookups)]
        }
        Target::Presence(_)
        | Target::Presences
        | Target::Leases
        | Target::Kind(_)
        | Target::Kinds
        | Target::Key(_)
        | Target::KeysToRebalance
        | Target::PausedKeys
        | Target::Schedule(_)
        | Target::Schedules
        | Target::Times(..)
        | Target::Events(_)
        | Target::LastEvent
        | Target::Counts
        | Target::Miscounted => vec![others::others(scope, lookups)],
        _ => lookups.into_iter().map(|lookup| tasks::page(scope, lookup)).collect(),
    }
}

/// The rows begin with the number of the lookup, from 1.
fn lookup_query<T: 'static>(
    lookups: Vec<Lookup>,
    query: Query,
    read: impl Fn(&mut Reader<'_>) -> Result<T, StateError> + Send + Sync + 'static,
    to_result: impl Fn(Vec<T>) -> LookupResult + Send + Sync + 'static,
) -> LookupQuery {
    let add_rows = move |rows: &[&Row], read_set: &mut ReadSet| {
        let mut all: Vec<Vec<T>> = lookups.iter().map(|_| Vec::new()).collect();
        for row in rows {
            let mut reader = Reader::of(row);
            let which = reader.read::<u32>()? as usize;
            let one = read(&mut reader).map_err(|error| in_row(row, error))?;
            if let Some(of_one) = which.checked_sub(1).and_then(|at| all.get_mut(at)) {
                of_one.push(one);
            }
        }
        for (lookup, all) in lookups.iter().zip(all) {
            let result = to_result(all);
            if let LookupResult::Tasks(tasks) = &result {
                insert_tasks(tasks, read_set);
            }
            read_set.insert(lookup.clone(), result);
        }
        Ok(())
    };
    LookupQuery { query, shape: RowShape::Others, add_rows: Box::new(add_rows) }
}

/// As [`lookup_query`], for rows of one table.
fn records<R: Record>(
    lookups: Vec<Lookup>,
    query: Query,
    to_result: impl Fn(Vec<R>) -> LookupResult + Send + Sync + 'static,
) -> LookupQuery {
    lookup_query(lookups, query, |reader| R::read(reader), to_result)
}

/// Also adds the tasks by id: the rules ask for them later.
fn insert_tasks(tasks: &[Task], read_set: &mut ReadSet) {
    for task in tasks {
        read_set.insert_if_absent(Target::Task(task.id), LookupResult::Task(Some(Box::new(task.clone()))));
    }
}

fn in_row(row: &Row, error: StateError) -> StateError {
    if error.kind() != StateErrorKind::Damaged {
        return error;
    }
    let which = columns::row_of(row);
    let text = format!(
        "postgres has a row of stored tasks that cannot be used ({which}): {error}: put it right, or remove the row"
    );
    StateError::new(StateErrorKind::Damaged, text)
}

/// The first value is the number of the queue.
fn query(scope: Scope, sql: impl Into<std::borrow::Cow<'static, str>>) -> Query {
    Query::new(sql).with(scope.queue, Type::INT8)
}

fn limits(lookups: &[Lookup]) -> Vec<i64> {
    lookups.iter().map(|lookup| i64::from(lookup.limit)).collect()
}
