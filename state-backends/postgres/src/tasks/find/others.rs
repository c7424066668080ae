//! Lookups of queues, workers, kinds, keys, schedules and counts.

use interval_queue_contract::StateError;
use interval_queue_task_contract::{Corrected, Counted, Event, Kind, Took, field::RowReader as _};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{Locks, LookupQuery, Scope, lookup_query, query, records};
use crate::tasks::{
    columns::{KEY, KIND, SCHEDULE, WORKER},
    row_reader::Reader,
    view::{Lease, Lookup, LookupResult, Target},
};

fn read_lease(reader: &mut Reader<'_>) -> Result<Lease, StateError> {
    Ok(Lease {
        worker: reader.read()?,
        lease: reader.read()?,
        ends: reader.read()?,
        busy: reader.read()?,
        cleared: reader.read()?,
    })
}

const COUNTS: &str = "SELECT 1::bigint, c.kind, c.counted, sum(c.number)::bigint FROM (\
                      SELECT kind, counted, number FROM interval_queue_task_count WHERE queue = $1 \
                      UNION ALL \
                      SELECT d.kind, d.counted, d.number FROM interval_queue_task_counted AS c, \
                      unnest(c.kinds, c.counted, c.more) AS d (kind, counted, number) \
                      WHERE c.queue = $1 AND d.counted NOT LIKE 'took %') AS c \
                      GROUP BY c.kind, c.counted";

fn read_count(reader: &mut Reader<'_>) -> Result<(Kind, Counted, u64), StateError> {
    // The sum is never negative, even if one of its parts is.
    Ok((reader.read()?, reader.read()?, reader.read::<i64>()?.max(0).unsigned_abs()))
}

// One statement reads one snapshot: each transaction stores a task together with its counts.
const MISCOUNTED: &str = "SELECT 1::bigint, c.kind, c.counted, sum(c.before)::bigint, sum(c.stored)::bigint FROM (\
                          SELECT kind, counted, number AS before, 0::bigint AS stored FROM interval_queue_task_count \
                          WHERE queue = $1 \
                          UNION ALL \
                          SELECT d.kind, d.counted, d.number, 0 FROM interval_queue_task_counted AS c, \
                          unnest(c.kinds, c.counted, c.more) AS d (kind, counted, number) \
                          WHERE c.queue = $1 \
                          UNION ALL \
                          SELECT kind, state, 0, count(*) FROM interval_queue_task WHERE queue = $1 \
                          GROUP BY kind, state) AS c \
                          WHERE c.counted NOT LIKE 'ever%' AND c.counted NOT LIKE 'took %' \
                          GROUP BY c.kind, c.counted HAVING sum(c.before) <> sum(c.stored)";

fn read_miscounted(reader: &mut Reader<'_>) -> Result<Corrected, StateError> {
    let (kind, state) = (reader.read()?, reader.read()?);
    Ok(Corrected { kind, state, before: reader.read()?, counted: reader.read()? })
}

const TIMES: &str = "SELECT 1::bigint, c.hour, c.cell, sum(c.number)::bigint FROM (\
                     SELECT hour, cell, number FROM interval_queue_task_times \
                     WHERE queue = $1 AND kind = $2 AND hour >= $3 \
                     UNION ALL \
                     SELECT d.hour, d.cell, d.number FROM (\
                     SELECT split_part(d.counted, ' ', 2)::bigint AS hour, split_part(d.counted, ' ', 3)::bigint AS cell, \
                     d.number FROM interval_queue_task_counted AS c, \
                     unnest(c.kinds, c.counted, c.more) AS d (kind, counted, number) \
                     WHERE c.queue = $1 AND d.kind = $2 AND d.counted LIKE 'took %' OFFSET 0) AS d \
                     WHERE d.hour >= $3) AS c GROUP BY c.hour, c.cell ORDER BY c.hour, c.cell";

fn read_time(reader: &mut Reader<'_>) -> Result<(Took, u64), StateError> {
    let took = Took { hour: reader.read()?, cell: reader.read()? };
    Ok((took, reader.read::<i64>()?.max(0).unsigned_abs()))
}

const EVENTS: &str = "SELECT 1::bigint, number, event::text FROM interval_queue_task_event \
                      WHERE queue = $1 AND number > $2 ORDER BY number LIMIT $3";

fn read_event(reader: &mut Reader<'_>) -> Result<(u64, Event), StateError> {
    Ok((reader.read()?, reader.read()?))
}

const LAST_EVENT: &str =
    "SELECT 1::bigint, coalesce(max(number), 0) FROM interval_queue_task_event WHERE queue = $1";

/// Requires lookups of one table.
pub(super) fn others(scope: Scope, lookups: Vec<Lookup>) -> LookupQuery {
    let Some(first) = lookups.first().cloned() else {
        return lookup_query(
            lookups,
            query(scope, "SELECT $1"),
            |reader| reader.read::<i64>(),
            |_| LookupResult::Number(0),
        );
    };
    let names = lookups.iter().filter_map(|lookup| match &lookup.target {
        Target::Kind(kind) => Some(kind.to_string()),
        Target::Key(name) | Target::Schedule(name) => Some(name.to_string()),
        _ => None,
    });
    let named = |columns: &str, table: &str, column: &str, alias: &str| {
        let sql = format!(
            "SELECT a.n, {columns} FROM unnest($2::text[]) WITH ORDINALITY AS a (name, n), \
             LATERAL (SELECT * FROM interval_queue_task_{table} WHERE queue = $1 AND {column} = a.name OFFSET 0) AS {alias}"
        );
        query(scope, sql)
    };
    let all = |columns: &str, rest: &str| {
        query(scope, format!("SELECT 1::bigint, {columns} FROM interval_queue_task_{rest}"))
    };
    match first.target {
        Target::Presence(_) => {
            let workers = lookups.iter().filter_map(|lookup| match lookup.target {
                Target::Presence(worker) => Some(worker.uuid()),
                _ => None,
            });
            let workers: Vec<Uuid> = workers.collect();
            let worker = &*WORKER;
            let lock = if scope.locks == Locks::Own { "FOR NO KEY UPDATE" } else { "OFFSET 0" };
            let sql = format!(
                "SELECT a.n, {worker} FROM unnest($2::uuid[]) WITH ORDINALITY AS a (id, n), \
                 LATERAL (SELECT * FROM interval_queue_task_worker AS w WHERE w.queue = $1 AND w.worker = a.id {lock}) AS w"
            );
            let query = query(scope, sql).with(workers, Type::UUID_ARRAY);
            records(lookups, query, |all| LookupResult::Presence(all.into_iter().next().map(Box::new)))
        }
        Target::Presences => {
            let query = all(&WORKER, "worker AS w WHERE w.queue = $1");
            records(lookups, query, LookupResult::Presences)
        }
        Target::Leases => {
            let query = all("w.worker, w.lease, w.ends, w.busy, w.cleared", "worker AS w WHERE w.queue = $1");
            lookup_query(lookups, query, read_lease, LookupResult::Leases)
        }
        Target::Kind(_) => {
            let query = named(&KIND, "kind", "kind", "k").with(names.collect::<Vec<_>>(), Type::TEXT_ARRAY);
            records(lookups, query, |all| LookupResult::Kind(all.into_iter().next()))
        }
        Target::Kinds => records(lookups, all(&KIND, "kind AS k WHERE k.queue = $1"), LookupResult::Kinds),
        Target::Key(_) => {
            let query = named(&KEY, "key", "key", "k").with(names.collect::<Vec<_>>(), Type::TEXT_ARRAY);
            records(lookups, query, |all| LookupResult::Key(all.into_iter().next()))
        }
        Target::KeysToRebalance => {
            let query =
                all(&KEY, "key AS k WHERE k.queue = $1 AND k.needs_rebalancing ORDER BY k.key LIMIT $2")
                    .with(i64::from(first.limit), Type::INT8);
            records(lookups, query, LookupResult::Keys)
        }
        Target::PausedKeys => {
            let query =
                all(&KEY, "key AS k WHERE k.queue = $1 AND k.max_running = 0 ORDER BY k.key LIMIT $2")
                    .with(i64::from(first.limit), Type::INT8);
            records(lookups, query, LookupResult::Keys)
        }
        Target::Schedule(_) => {
            let query =
                named(&SCHEDULE, "schedule", "name", "s").with(names.collect::<Vec<_>>(), Type::TEXT_ARRAY);
            records(lookups, query, |all| LookupResult::Schedule(all.into_iter().next().map(Box::new)))
        }
        Target::Schedules => {
            let query = all(&SCHEDULE, "schedule AS s WHERE s.queue = $1");
            records(lookups, query, LookupResult::Schedules)
        }
        Target::Times(kind, from) => {
            let query = query(scope, TIMES).with(kind.to_string(), Type::TEXT);
            lookup_query(lookups, query.with(i64::from(from), Type::INT8), read_time, LookupResult::Times)
        }
        Target::Events(after) => {
            let query = query(scope, EVENTS).with(after.cast_signed(), Type::INT8);
            lookup_query(
                lookups,
                query.with(i64::from(first.limit), Type::INT8),
                read_event,
                LookupResult::Events,
            )
        }
        Target::LastEvent => {
            let number = |numbers: Vec<u64>| LookupResult::Number(numbers.into_iter().next().unwrap_or(0));
            lookup_query(lookups, query(scope, LAST_EVENT), |reader| reader.read(), number)
        }
        Target::Miscounted => lookup_query(lookups, query(scope, MISCOUNTED), read_miscounted, |mut rows| {
            rows.sort_unstable();
            LookupResult::Miscounted(rows)
        }),
        _ => lookup_query(lookups, query(scope, COUNTS), read_count, LookupResult::Counts),
    }
}
