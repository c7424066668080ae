//! Existence probe: one statement tests whether several lookups of a poll under the shared lock
//! would return rows, since they seldom do.

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    TaskId,
    field::RowReader as _,
    index::{self, Index as _},
};
use tokio_postgres::{Row, types::Type};
use uuid::Uuid;

use super::{LookupQuery, RowShape, Scope, query};
use crate::tasks::{
    row_reader::Reader,
    view::{Lookup, LookupResult, ReadSet, Target},
};

/// One value for each column: an ended task with pending notifications, a scheduled task and an
/// added task (if the poll may admit tasks), a task that this worker must stop, and a new or open
/// edge from the given tasks.
const FIRST_ROWS: &str = "SELECT \
    (SELECT t.id FROM interval_queue_task AS t WHERE t.queue = $1 AND NOT t.notified AND t.ended IS NOT NULL ORDER BY t.id LIMIT 1), \
    CASE WHEN $4 THEN (SELECT t.not_before FROM interval_queue_task AS t WHERE t.queue = $1 AND t.state = 'scheduled' \
    ORDER BY t.not_before LIMIT 1) END, \
    CASE WHEN $4 THEN (SELECT t.id FROM interval_queue_task AS t WHERE t.queue = $1 AND t.state = 'added' \
    ORDER BY t.due LIMIT 1) END, \
    (SELECT t.id FROM interval_queue_task AS t WHERE t.queue = $1 AND t.worker = $2 AND t.stop IS NOT NULL \
    ORDER BY t.id LIMIT 1), \
    (SELECT e.up FROM interval_queue_task_edge AS e WHERE e.queue = $1 AND e.up = ANY ($3) \
    AND (e.state = 'new' OR e.state = 'open') LIMIT 1)";

fn column_of(target: &Target) -> Option<usize> {
    match target {
        Target::Look(index::Unnotified::NUMBER, _) => Some(0),
        Target::Look(index::Scheduled::NUMBER, _) => Some(1),
        Target::Look(index::Added::NUMBER, _) => Some(2),
        Target::Look(index::ToStop::NUMBER, _) => Some(3),
        Target::UnnotifiedFrom(_, 0) => Some(4),
        _ => None,
    }
}

pub(in crate::tasks) fn has_probe(lookup: &Lookup) -> bool {
    column_of(&lookup.target).is_some()
}

/// Adds empty results for lookups that would find nothing. The others remain missing.
pub(in crate::tasks) fn probe(scope: Scope, lookups: Vec<Lookup>) -> LookupQuery {
    let worker: Option<Uuid> = lookups.iter().find_map(|lookup| match &lookup.target {
        Target::Look(index::ToStop::NUMBER, values) => values.first()?.parse().ok(),
        _ => None,
    });
    let ups = lookups.iter().filter_map(|lookup| match lookup.target {
        Target::UnnotifiedFrom(up, _) => Some(up),
        _ => None,
    });
    let ups: Vec<Uuid> = ups.map(TaskId::uuid).collect();
    let admits = lookups.iter().any(|lookup| lookup.target.is_of::<index::Added>());
    let query = query(scope, FIRST_ROWS)
        .with(worker, Type::UUID)
        .with(ups, Type::UUID_ARRAY)
        .with(admits, Type::BOOL);
    let add_rows = move |rows: &[&Row], read_set: &mut ReadSet| {
        for row in rows {
            let mut reader = Reader::of(row);
            for column in 0..5 {
                // No task is scheduled before the first one.
                let until = match column {
                    1 => reader.read::<Option<Micros>>()?.map_or(Micros::MAX, |first| first - Micros::new(1)),
                    _ if reader.id()?.is_some() => continue,
                    _ => Micros::MAX,
                };
                for lookup in lookups.iter().filter(|lookup| column_of(&lookup.target) == Some(column)) {
                    let result = if column == 4 {
                        LookupResult::Edges(Vec::new())
                    } else {
                        LookupResult::Tasks(Vec::new())
                    };
                    read_set.insert(Lookup { until, ..lookup.clone() }, result);
                }
            }
        }
        Ok(())
    };
    LookupQuery { query, shape: RowShape::Others, add_rows: Box::new(add_rows) }
}
