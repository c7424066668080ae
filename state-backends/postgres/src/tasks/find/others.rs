//! Lookups of queues, workers, kinds, keys, schedules and counts.

use interval_queue_contract::StateError;
use interval_queue_task_contract::{
    Corrected, Counted, Event, Json, KeyRow, Kind, KindRow, Presence, Queue, Schedule, TaskId, Took, WorkerId,
};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{Locks, LookupQuery, Scope, lookup_query, query};
use crate::tasks::{
    row_reader::{RowReader, wide},
    view::{Lease, Lookup, LookupResult, Target},
};

pub(in crate::tasks) const QUEUE: &str = "settings::text, paused, paused_at, incarnation, lease_clock, seen, latest, maintenance_due, rebalance_after::text, followed::text";

pub(in crate::tasks) fn read_queue(reader: &mut RowReader<'_>) -> Result<Queue, StateError> {
    Ok(Queue {
        settings: reader.json()?,
        paused: reader.truth()?,
        paused_at: reader.some_micros()?,
        incarnation: reader.micros()?,
        lease_clock: reader.micros()?,
        seen: reader.micros()?,
        latest: reader.micros()?,
        maintenance_due: reader.truth()?,
        rebalance_after: reader.some_json()?,
        followed: reader.some_json()?,
    })
}

const WORKER: &str = "w.worker, w.label, w.sequence, w.lease, w.ends, w.kinds::text, w.version, w.since, w.seen, w.busy, w.cleared, \
    w.at_least, w.room";

fn read_worker(reader: &mut RowReader<'_>) -> Result<Presence, StateError> {
    Ok(Presence {
        worker: WorkerId::new(reader.id()?),
        label: reader.named("no label")?,
        sequence: reader.int()? as u64,
        lease: reader.micros()?,
        ends: reader.micros()?,
        kinds: reader.json()?,
        version: reader.number()?,
        since: reader.micros()?,
        seen: reader.micros()?,
        busy: reader.truth()?,
        cleared: reader.truth()?,
        at_least: reader.some_number()?,
        room: reader.some_number()?,
    })
}

fn read_lease(reader: &mut RowReader<'_>) -> Result<Lease, StateError> {
    Ok(Lease {
        worker: WorkerId::new(reader.id()?),
        lease: reader.micros()?,
        ends: reader.micros()?,
        busy: reader.truth()?,
        cleared: reader.truth()?,
    })
}

const KIND: &str = "k.kind, k.paused, k.paused_at, k.served_until, k.open, k.needs_rebalancing";

fn read_kind(reader: &mut RowReader<'_>) -> Result<KindRow, StateError> {
    Ok(KindRow {
        kind: reader.named("no kind")?,
        paused: reader.truth()?,
        paused_at: reader.some_micros()?,
        served_until: reader.micros()?,
        open: reader.truth()?,
        needs_rebalancing: reader.truth()?,
    })
}

const KEY: &str = "k.key, k.max_running, k.paused_at, k.needs_rebalancing";

fn read_key(reader: &mut RowReader<'_>) -> Result<KeyRow, StateError> {
    Ok(KeyRow {
        key: reader.named("no key")?,
        limit: reader.some_number()?,
        paused_at: reader.some_micros()?,
        needs_rebalancing: reader.truth()?,
    })
}

const SCHEDULE: &str = "s.name, s.revision, s.incarnation, s.definition::text, s.next, s.paused, s.overlap, s.last, \
                        s.kept, s.may_follow";

fn read_schedule(reader: &mut RowReader<'_>) -> Result<Schedule, StateError> {
    Ok(Schedule {
        name: reader.named("no name")?,
        revision: reader.int()? as u64,
        incarnation: reader.micros()?,
        definition: Json::stored(reader.text()?),
        next: reader.some_micros()?,
        paused: reader.truth()?,
        overlap: reader.word()?.unwrap_or_default(),
        last: reader.some_id()?.map(TaskId::new),
        kept: reader.some_micros()?,
        may_follow: reader.truth()?,
    })
}

const COUNTS: &str = "SELECT 1::bigint, c.kind, c.counted, sum(c.number)::bigint FROM (\
                      SELECT kind, counted, number FROM interval_queue_task_count WHERE queue = $1 \
                      UNION ALL \
                      SELECT d.kind, d.counted, d.number FROM interval_queue_task_counted AS c, \
                      unnest(c.kinds, c.counted, c.more) AS d (kind, counted, number) \
                      WHERE c.queue = $1 AND d.counted NOT LIKE 'took %') AS c \
                      GROUP BY c.kind, c.counted";

fn read_count(reader: &mut RowReader<'_>) -> Result<(Kind, Counted, u64), StateError> {
    let kind: Kind = reader.named("no kind")?;
    let text = reader.text()?;
    let counted = Counted::of_str(text).ok_or_else(|| reader.bad(&text, "not counted"))?;
    // The sum is never negative, though its parts may be.
    Ok((kind, counted, reader.int()?.max(0).unsigned_abs()))
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

fn read_miscounted(reader: &mut RowReader<'_>) -> Result<Corrected, StateError> {
    let kind = reader.named("no kind")?;
    let state = reader.word()?.ok_or_else(|| reader.bad(&"", "no state"))?;
    Ok(Corrected { kind, state, before: reader.int()?, counted: reader.number()? })
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

fn read_time(reader: &mut RowReader<'_>) -> Result<(Took, u64), StateError> {
    Ok((Took { hour: reader.number()?, cell: reader.number()? }, reader.int()?.max(0).unsigned_abs()))
}

const EVENTS: &str = "SELECT 1::bigint, number, event::text FROM interval_queue_task_event \
                      WHERE queue = $1 AND number > $2 ORDER BY number LIMIT $3";

fn read_event(reader: &mut RowReader<'_>) -> Result<(u64, Event), StateError> {
    let number = reader.number()?;
    Ok((number, reader.some_json()?.ok_or_else(|| reader.bad(&"", "no event"))?))
}

const LAST_EVENT: &str =
    "SELECT 1::bigint, coalesce(max(number), 0) FROM interval_queue_task_event WHERE queue = $1";

/// Requires lookups of one table.
pub(super) fn others(scope: Scope, lookups: Vec<Lookup>) -> LookupQuery {
    let Some(first) = lookups.first().cloned() else {
        return lookup_query(
            lookups,
            query(scope, "SELECT $1"),
            |reader| reader.int(),
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
            let lock = if scope.locks == Locks::Own { "FOR NO KEY UPDATE" } else { "OFFSET 0" };
            let sql = format!(
                "SELECT a.n, {WORKER} FROM unnest($2::uuid[]) WITH ORDINALITY AS a (id, n), \
                 LATERAL (SELECT * FROM interval_queue_task_worker AS w WHERE w.queue = $1 AND w.worker = a.id {lock}) AS w"
            );
            let query = query(scope, sql).with(workers, Type::UUID_ARRAY);
            lookup_query(lookups, query, read_worker, |all| {
                LookupResult::Presence(all.into_iter().next().map(Box::new))
            })
        }
        Target::Presences => {
            let query = all(WORKER, "worker AS w WHERE w.queue = $1");
            lookup_query(lookups, query, read_worker, LookupResult::Presences)
        }
        Target::Leases => {
            let query = all("w.worker, w.lease, w.ends, w.busy, w.cleared", "worker AS w WHERE w.queue = $1");
            lookup_query(lookups, query, read_lease, LookupResult::Leases)
        }
        Target::Kind(_) => {
            let query = named(KIND, "kind", "kind", "k").with(names.collect::<Vec<_>>(), Type::TEXT_ARRAY);
            lookup_query(lookups, query, read_kind, |all| LookupResult::Kind(all.into_iter().next()))
        }
        Target::Kinds => {
            lookup_query(lookups, all(KIND, "kind AS k WHERE k.queue = $1"), read_kind, LookupResult::Kinds)
        }
        Target::Key(_) => {
            let query = named(KEY, "key", "key", "k").with(names.collect::<Vec<_>>(), Type::TEXT_ARRAY);
            lookup_query(lookups, query, read_key, |all| LookupResult::Key(all.into_iter().next()))
        }
        Target::KeysToRebalance => {
            let query =
                all(KEY, "key AS k WHERE k.queue = $1 AND k.needs_rebalancing ORDER BY k.key LIMIT $2")
                    .with(i64::from(first.limit), Type::INT8);
            lookup_query(lookups, query, read_key, LookupResult::Keys)
        }
        Target::PausedKeys => {
            let query = all(KEY, "key AS k WHERE k.queue = $1 AND k.max_running = 0 ORDER BY k.key LIMIT $2")
                .with(i64::from(first.limit), Type::INT8);
            lookup_query(lookups, query, read_key, LookupResult::Keys)
        }
        Target::Schedule(_) => {
            let query =
                named(SCHEDULE, "schedule", "name", "s").with(names.collect::<Vec<_>>(), Type::TEXT_ARRAY);
            lookup_query(lookups, query, read_schedule, |all| {
                LookupResult::Schedule(all.into_iter().next().map(Box::new))
            })
        }
        Target::Schedules => {
            let query = all(SCHEDULE, "schedule AS s WHERE s.queue = $1");
            lookup_query(lookups, query, read_schedule, LookupResult::Schedules)
        }
        Target::Times(kind, from) => {
            let query = query(scope, TIMES).with(kind.to_string(), Type::TEXT);
            lookup_query(lookups, query.with(i64::from(from), Type::INT8), read_time, LookupResult::Times)
        }
        Target::Events(after) => {
            let query = query(scope, EVENTS).with(wide(after), Type::INT8);
            lookup_query(
                lookups,
                query.with(i64::from(first.limit), Type::INT8),
                read_event,
                LookupResult::Events,
            )
        }
        Target::LastEvent => {
            let number = |numbers: Vec<u64>| LookupResult::Number(numbers.into_iter().next().unwrap_or(0));
            lookup_query(lookups, query(scope, LAST_EVENT), |reader| reader.number(), number)
        }
        Target::Miscounted => lookup_query(lookups, query(scope, MISCOUNTED), read_miscounted, |mut rows| {
            rows.sort_unstable();
            LookupResult::Miscounted(rows)
        }),
        _ => lookup_query(lookups, query(scope, COUNTS), read_count, LookupResult::Counts),
    }
}
