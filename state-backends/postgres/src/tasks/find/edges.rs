//! Lookups of edges.

use interval_queue_task_contract::{EdgeState, TaskId};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{LookupQuery, Scope, limits, query, records};
use crate::tasks::{
    columns::EDGE,
    view::{Lookup, LookupResult, Target},
};

/// Looks up edges from tasks or to tasks.
pub(super) fn edges(scope: Scope, lookups: Vec<Lookup>) -> LookupQuery {
    let columns = &*EDGE;
    let (mut ends, mut lives) = (Vec::<Uuid>::new(), Vec::<i64>::new());
    let (mut states, mut after) = (Vec::<Option<&str>>::new(), Vec::<Option<Uuid>>::new());
    for lookup in &lookups {
        let (end, generation, state, behind) = match lookup.target {
            Target::From(up, after) => (up, 0, None, after),
            Target::UnnotifiedFrom(up, generation) => (up, generation, None, None),
            Target::Pending(down) => (down, 0, None, None),
            Target::To(down, state, after) => (down, 0, state, after),
            _ => (TaskId::FIRST, 0, None, None),
        };
        ends.push(end.uuid());
        lives.push(generation.into());
        states.push(state.map(EdgeState::as_str));
        after.push(behind.map(TaskId::uuid));
    }
    let subquery = match lookups.first().map(|lookup| &lookup.target) {
        Some(Target::From(..)) => format!(
            "SELECT {columns} FROM interval_queue_task_edge AS e WHERE e.queue = $1 AND e.up = a.id \
             AND (a.after IS NULL OR e.down > a.after) ORDER BY e.down LIMIT a.most"
        ),
        Some(Target::UnnotifiedFrom(..)) => format!(
            "(SELECT {columns} FROM interval_queue_task_edge AS e WHERE e.queue = $1 AND e.up = a.id \
             AND (e.state = 'new' OR e.state = 'open') ORDER BY e.down LIMIT a.most) \
             UNION ALL \
             (SELECT {columns} FROM interval_queue_task_edge AS e WHERE e.queue = $1 AND e.up = a.id \
             AND e.state = 'held' AND e.generation < a.generation ORDER BY e.generation, e.down LIMIT a.most)"
        ),
        Some(Target::Pending(_)) => to(columns, "ARRAY['new', 'open', 'held']"),
        _ => to(
            columns,
            "CASE WHEN a.state IS NULL THEN ARRAY['new', 'open', 'met', 'failed', 'held', 'cut'] ELSE ARRAY[a.state] END",
        ),
    };
    let sql = format!(
        "SELECT a.n, l.* FROM unnest($2::uuid[], $3::bigint[], $4::bigint[], $5::text[], $6::uuid[]) \
         WITH ORDINALITY AS a (id, most, generation, state, after, n), LATERAL ({subquery}) AS l"
    );
    let states: Vec<Option<String>> = states.into_iter().map(|state| state.map(str::to_owned)).collect();
    let query = query(scope, sql)
        .with(ends, Type::UUID_ARRAY)
        .with(limits(&lookups), Type::INT8_ARRAY)
        .with(lives, Type::INT8_ARRAY)
        .with(states, Type::TEXT_ARRAY)
        .with(after, Type::UUID_ARRAY);
    records(lookups, query, LookupResult::Edges)
}

/// Selects edges to a task by state, in the order of the index.
fn to(columns: &str, states: &str) -> String {
    format!(
        "SELECT {columns} FROM unnest({states}) AS s (state), LATERAL (SELECT * FROM interval_queue_task_edge AS e \
         WHERE e.queue = $1 AND e.down = a.id AND e.state = s.state AND (a.after IS NULL OR e.up > a.after) \
         ORDER BY e.up LIMIT a.most) AS e ORDER BY e.up LIMIT a.most"
    )
}
