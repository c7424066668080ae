//! Looks for the rows of a queue beside its tasks: itself, its workers, kinds, keys, schedules and counts.

use interval_queue_contract::StateError;
use interval_queue_task_contract::{
    Corrected, Counted, Event, Json, KeyRow, Kind, KindRow, Presence, Queue, Schedule, TaskId, Took, WorkerId,
};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{Locks, Place, Question, query, question};
use crate::tasks::{
    cells::{Cells, wide},
    overlay::{Ask, Found, Lease, Look},
};

pub(in crate::tasks) const QUEUE: &str = "settings::text, paused, paused_at, incarnation, lease_clock, seen, latest, maintenance_due, rebalance_after::text, followed::text";

pub(in crate::tasks) fn read_queue(cells: &mut Cells<'_>) -> Result<Queue, StateError> {
    Ok(Queue {
        settings: cells.json()?,
        paused: cells.truth()?,
        paused_at: cells.some_micros()?,
        incarnation: cells.micros()?,
        lease_clock: cells.micros()?,
        seen: cells.micros()?,
        latest: cells.micros()?,
        maintenance_due: cells.truth()?,
        rebalance_after: cells.some_json()?,
        followed: cells.some_json()?,
    })
}

const WORKER: &str = "w.worker, w.label, w.sequence, w.lease, w.ends, w.kinds::text, w.version, w.since, w.seen, w.busy, w.cleared, \
    w.at_least, w.room";

fn read_worker(cells: &mut Cells<'_>) -> Result<Presence, StateError> {
    Ok(Presence {
        worker: WorkerId::new(cells.id()?),
        label: cells.named("no label")?,
        sequence: cells.int()? as u64,
        lease: cells.micros()?,
        ends: cells.micros()?,
        kinds: cells.json()?,
        version: cells.number()?,
        since: cells.micros()?,
        seen: cells.micros()?,
        busy: cells.truth()?,
        cleared: cells.truth()?,
        at_least: cells.some_number()?,
        room: cells.some_number()?,
    })
}

fn read_lease(cells: &mut Cells<'_>) -> Result<Lease, StateError> {
    Ok(Lease {
        worker: WorkerId::new(cells.id()?),
        lease: cells.micros()?,
        ends: cells.micros()?,
        busy: cells.truth()?,
        cleared: cells.truth()?,
    })
}

const KIND: &str = "k.kind, k.paused, k.paused_at, k.served_until, k.open, k.needs_rebalancing";

fn read_kind(cells: &mut Cells<'_>) -> Result<KindRow, StateError> {
    Ok(KindRow {
        kind: cells.named("no kind")?,
        paused: cells.truth()?,
        paused_at: cells.some_micros()?,
        served_until: cells.micros()?,
        open: cells.truth()?,
        needs_rebalancing: cells.truth()?,
    })
}

const KEY: &str = "k.key, k.max_running, k.paused_at, k.needs_rebalancing";

fn read_key(cells: &mut Cells<'_>) -> Result<KeyRow, StateError> {
    Ok(KeyRow {
        key: cells.named("no key")?,
        limit: cells.some_number()?,
        paused_at: cells.some_micros()?,
        needs_rebalancing: cells.truth()?,
    })
}

const SCHEDULE: &str = "s.name, s.revision, s.incarnation, s.definition::text, s.next, s.paused, s.overlap, s.last, \
                        s.kept, s.may_follow";

fn read_schedule(cells: &mut Cells<'_>) -> Result<Schedule, StateError> {
    Ok(Schedule {
        name: cells.named("no name")?,
        revision: cells.int()? as u64,
        incarnation: cells.micros()?,
        definition: Json::stored(cells.text()?),
        next: cells.some_micros()?,
        paused: cells.truth()?,
        overlap: cells.word()?.unwrap_or_default(),
        last: cells.some_id()?.map(TaskId::new),
        kept: cells.some_micros()?,
        may_follow: cells.truth()?,
    })
}

const COUNTS: &str = "SELECT 1::bigint, c.kind, c.counted, sum(c.number)::bigint FROM (\
                      SELECT kind, counted, number FROM interval_queue_task_count WHERE queue = $1 \
                      UNION ALL \
                      SELECT d.kind, d.counted, d.number FROM interval_queue_task_counted AS c, \
                      unnest(c.kinds, c.counted, c.more) AS d (kind, counted, number) \
                      WHERE c.queue = $1 AND d.counted NOT LIKE 'took %') AS c \
                      GROUP BY c.kind, c.counted";

fn read_count(cells: &mut Cells<'_>) -> Result<(Kind, Counted, u64), StateError> {
    let kind: Kind = cells.named("no kind")?;
    let text = cells.text()?;
    let counted = Counted::of_str(text).ok_or_else(|| cells.bad(&text, "not counted"))?;
    // A sum is never less than nothing, whatever one of its parts is.
    Ok((kind, counted, cells.int()?.max(0).unsigned_abs()))
}

// One statement, and so one instant: a task and what it adds to the counts are stored by one transaction.
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

fn read_miscounted(cells: &mut Cells<'_>) -> Result<Corrected, StateError> {
    let kind = cells.named("no kind")?;
    let state = cells.word()?.ok_or_else(|| cells.bad(&"", "no state"))?;
    Ok(Corrected { kind, state, before: cells.int()?, counted: cells.number()? })
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

fn read_time(cells: &mut Cells<'_>) -> Result<(Took, u64), StateError> {
    Ok((Took { hour: cells.number()?, cell: cells.number()? }, cells.int()?.max(0).unsigned_abs()))
}

const EVENTS: &str = "SELECT 1::bigint, number, event::text FROM interval_queue_task_event \
                      WHERE queue = $1 AND number > $2 ORDER BY number LIMIT $3";

fn read_event(cells: &mut Cells<'_>) -> Result<(u64, Event), StateError> {
    let number = cells.number()?;
    Ok((number, cells.some_json()?.ok_or_else(|| cells.bad(&"", "no event"))?))
}

const LAST_EVENT: &str =
    "SELECT 1::bigint, coalesce(max(number), 0) FROM interval_queue_task_event WHERE queue = $1";

/// The rows of one table.
pub(super) fn others(place: Place, asks: Vec<Ask>) -> Question {
    let Some(first) = asks.first().cloned() else {
        return question(asks, query(place, "SELECT $1"), |cells| cells.int(), |_| Found::Number(0));
    };
    let names = asks.iter().filter_map(|ask| match &ask.look {
        Look::Kind(kind) => Some(kind.to_string()),
        Look::Key(name) | Look::Schedule(name) => Some(name.to_string()),
        _ => None,
    });
    let named = |columns: &str, table: &str, column: &str, alias: &str| {
        let sql = format!(
            "SELECT a.n, {columns} FROM unnest($2::text[]) WITH ORDINALITY AS a (name, n), \
             LATERAL (SELECT * FROM interval_queue_task_{table} WHERE queue = $1 AND {column} = a.name OFFSET 0) AS {alias}"
        );
        query(place, sql)
    };
    let all = |columns: &str, rest: &str| {
        query(place, format!("SELECT 1::bigint, {columns} FROM interval_queue_task_{rest}"))
    };
    match first.look {
        Look::Presence(_) => {
            let workers = asks.iter().filter_map(|ask| match ask.look {
                Look::Presence(worker) => Some(worker.uuid()),
                _ => None,
            });
            let workers: Vec<Uuid> = workers.collect();
            let lock = if place.locks == Locks::Own { "FOR NO KEY UPDATE" } else { "OFFSET 0" };
            let sql = format!(
                "SELECT a.n, {WORKER} FROM unnest($2::uuid[]) WITH ORDINALITY AS a (id, n), \
                 LATERAL (SELECT * FROM interval_queue_task_worker AS w WHERE w.queue = $1 AND w.worker = a.id {lock}) AS w"
            );
            let query = query(place, sql).with(workers, Type::UUID_ARRAY);
            question(asks, query, read_worker, |all| Found::Presence(all.into_iter().next().map(Box::new)))
        }
        Look::Presences => {
            let query = all(WORKER, "worker AS w WHERE w.queue = $1");
            question(asks, query, read_worker, Found::Presences)
        }
        Look::Leases => {
            let query = all("w.worker, w.lease, w.ends, w.busy, w.cleared", "worker AS w WHERE w.queue = $1");
            question(asks, query, read_lease, Found::Leases)
        }
        Look::Kind(_) => {
            let query = named(KIND, "kind", "kind", "k").with(names.collect::<Vec<_>>(), Type::TEXT_ARRAY);
            question(asks, query, read_kind, |all| Found::Kind(all.into_iter().next()))
        }
        Look::Kinds => question(asks, all(KIND, "kind AS k WHERE k.queue = $1"), read_kind, Found::Kinds),
        Look::Key(_) => {
            let query = named(KEY, "key", "key", "k").with(names.collect::<Vec<_>>(), Type::TEXT_ARRAY);
            question(asks, query, read_key, |all| Found::Key(all.into_iter().next()))
        }
        Look::UnevenKeys => {
            let query =
                all(KEY, "key AS k WHERE k.queue = $1 AND k.needs_rebalancing ORDER BY k.key LIMIT $2")
                    .with(i64::from(first.most), Type::INT8);
            question(asks, query, read_key, Found::Keys)
        }
        Look::PausedKeys => {
            let query = all(KEY, "key AS k WHERE k.queue = $1 AND k.max_running = 0 ORDER BY k.key LIMIT $2")
                .with(i64::from(first.most), Type::INT8);
            question(asks, query, read_key, Found::Keys)
        }
        Look::Schedule(_) => {
            let query =
                named(SCHEDULE, "schedule", "name", "s").with(names.collect::<Vec<_>>(), Type::TEXT_ARRAY);
            question(asks, query, read_schedule, |all| Found::Schedule(all.into_iter().next().map(Box::new)))
        }
        Look::Schedules => {
            let query = all(SCHEDULE, "schedule AS s WHERE s.queue = $1");
            question(asks, query, read_schedule, Found::Schedules)
        }
        Look::Times(kind, from) => {
            let query = query(place, TIMES).with(kind.to_string(), Type::TEXT);
            question(asks, query.with(i64::from(from), Type::INT8), read_time, Found::Times)
        }
        Look::Events(after) => {
            let query = query(place, EVENTS).with(wide(after), Type::INT8);
            question(asks, query.with(i64::from(first.most), Type::INT8), read_event, Found::Events)
        }
        Look::LastEvent => {
            let number = |found: Vec<u64>| Found::Number(found.into_iter().next().unwrap_or(0));
            question(asks, query(place, LAST_EVENT), |cells| cells.number(), number)
        }
        Look::Miscounted => question(asks, query(place, MISCOUNTED), read_miscounted, |mut found| {
            found.sort_unstable();
            Found::Miscounted(found)
        }),
        _ => question(asks, query(place, COUNTS), read_count, Found::Counts),
    }
}
