//! Lookups of tasks.

use std::fmt::Write as _;

use interval_queue_task_contract::{
    Key, Kind, MAX_REPLY, Task, TaskId,
    field::{RowReader as _, micros},
    index::{self, Declared, Index as _},
    record::{Column, Record as _, read_task},
};
use tokio_postgres::{Row, types::Type};
use uuid::Uuid;

use super::{
    DECLARED, Locks, LookupQuery, RowShape, Scope, limits, lookup_query, query,
    selection::{scan_end, select},
};
use crate::tasks::{
    columns::{self, SELECTED},
    row_reader::Reader,
    view::{Lookup, LookupResult, ReadSet, Target},
};

pub(super) fn named(scope: Scope, mut lookups: Vec<Lookup>) -> LookupQuery {
    let lock = match scope.locks {
        Locks::KeyShare => "FOR KEY SHARE",
        // Other transactions may add downstreams.
        Locks::Own => "FOR NO KEY UPDATE",
        _ => "OFFSET 0",
    };
    let named = |lookup: &Lookup| match lookup.target {
        Target::Task(id) | Target::Payload(id) | Target::Result(id) | Target::Log(id) => Some(id),
        _ => None,
    };
    // All transactions lock in this order.
    lookups.sort_by_key(named);
    let ids: Vec<Uuid> = lookups.iter().filter_map(named).map(TaskId::uuid).collect();
    let column = match lookups.first().map(|lookup| &lookup.target) {
        Some(Target::Payload(_)) => "payload",
        Some(Target::Result(_)) => "result",
        Some(Target::Log(_)) => "log",
        _ => {
            let sql = format!(
                "SELECT a.n, {} FROM unnest($2::uuid[]) WITH ORDINALITY AS a (id, n), \
                 LATERAL (SELECT * FROM interval_queue_task AS t WHERE t.queue = $1 AND t.id = a.id {lock}) AS t",
                *SELECTED
            );
            return lookup_query(
                lookups,
                query(scope, sql).with(ids, Type::UUID_ARRAY),
                |reader| read_task(reader),
                one_task,
            )
            .tasks();
        }
    };
    bodies(scope, lookups, ids, column)
}

fn one_task(tasks: Vec<Task>) -> LookupResult {
    LookupResult::Task(tasks.into_iter().next().map(Box::new))
}

/// Up to about the size of a reply. The rules ask again for the rest if they need it.
fn bodies(scope: Scope, lookups: Vec<Lookup>, ids: Vec<Uuid>, column: &'static str) -> LookupQuery {
    let sql = format!(
        "SELECT s.n, s.body::text FROM (SELECT a.n, t.{column} AS body, \
         sum(pg_column_size(t.{column})) OVER (ORDER BY a.n) AS size \
         FROM unnest($2::uuid[]) WITH ORDINALITY AS a (id, n) \
         LEFT JOIN LATERAL (SELECT * FROM interval_queue_task AS t WHERE t.queue = $1 AND t.id = a.id OFFSET 0) AS t \
         ON true) AS s \
         WHERE s.n = 1 OR s.size IS NULL OR s.size <= {MAX_REPLY}"
    );
    let query = query(scope, sql).with(ids, Type::UUID_ARRAY);
    let add_rows = move |rows: &[&Row], read_set: &mut ReadSet| {
        for row in rows {
            let mut reader = Reader::of(row);
            let which = reader.read::<u32>()? as usize;
            let Some(lookup) = which.checked_sub(1).and_then(|at| lookups.get(at)) else { continue };
            let result = match lookup.target {
                Target::Log(_) => LookupResult::Log(reader.read()?),
                _ => LookupResult::Json(reader.read()?),
            };
            read_set.insert(lookup.clone(), result);
        }
        Ok(())
    };
    LookupQuery { query, shape: RowShape::Others, add_rows: Box::new(add_rows) }
}

/// Finds tasks of keys, or their number.
pub(super) fn of_keys(scope: Scope, lookups: Vec<Lookup>) -> LookupQuery {
    let keys = lookups.iter().filter_map(|lookup| match &lookup.target {
        Target::LeasedOfKey(key)
        | Target::Holders(key)
        | Target::OrderedHolders(key)
        | Target::LastReadyHolder(key)
        | Target::Blocked(key) => Some(key.as_str().to_owned()),
        _ => None,
    });
    let keys: Vec<String> = keys.collect();
    let condition = match lookups.first().map(|lookup| &lookup.target) {
        Some(Target::LeasedOfKey(_)) => "t.key IS NOT NULL AND t.state = 'leased'",
        Some(Target::OrderedHolders(_)) => "t.holds_key AND t.ordered",
        Some(Target::LastReadyHolder(_)) => {
            "t.holds_key AND t.state = 'ready' ORDER BY t.line DESC, t.added DESC, t.position DESC, t.id DESC"
        }
        Some(Target::Blocked(_)) => "t.state = 'blocked'",
        _ => "t.holds_key",
    };
    let are_counted = !condition.contains("ORDER");
    let of_key = |what: &str, limit: &str| {
        format!(
            "SELECT {what} FROM interval_queue_task AS t WHERE t.queue = $1 AND t.key = a.key AND {condition}{limit}"
        )
    };
    let subquery = match lookups.first().map(|lookup| &lookup.target) {
        Some(Target::Blocked(_)) => format!("SELECT count(*) FROM ({}) AS k", of_key("1", " LIMIT a.most")),
        _ if are_counted => of_key("count(*)", ""),
        _ => of_key(&SELECTED, " LIMIT a.most"),
    };
    let sql = format!(
        "SELECT a.n, l.* FROM unnest($2::text[], $3::bigint[]) WITH ORDINALITY AS a (key, most, n), \
         LATERAL ({subquery}) AS l"
    );
    let query = query(scope, sql).with(keys, Type::TEXT_ARRAY).with(limits(&lookups), Type::INT8_ARRAY);
    match are_counted {
        true => lookup_query(lookups, query, |reader| reader.read(), number),
        false => lookup_query(lookups, query, |reader| read_task(reader), LookupResult::Tasks).tasks(),
    }
}

fn number(numbers: Vec<u64>) -> LookupResult {
    LookupResult::Number(numbers.into_iter().next().unwrap_or(0))
}

/// A single lookup that returns several tasks, or one fact about all.
pub(super) fn page(scope: Scope, lookup: Lookup) -> LookupQuery {
    match &lookup.target {
        Target::Ready(kinds, at_least) => ready(scope, &lookup, kinds, *at_least),
        Target::Select(selection) => select(scope, &lookup, selection),
        Target::ScanEnd(after) => scan_end(scope, &lookup, *after),
        Target::NextKey(after) => next_key(scope, &lookup, after.as_ref()),
        &Target::First(number) => instants(scope, number, lookup),
        _ => {
            let sql = "SELECT 1::bigint, count(*) FROM interval_queue_task AS t WHERE t.queue = $1 AND t.state = 'leased'";
            lookup_query(vec![lookup], query(scope, sql), |reader| reader.read(), number)
        }
    }
}

pub(super) fn look(scope: Scope, number: usize, lookups: Vec<Lookup>) -> LookupQuery {
    let declared = &DECLARED[number];
    let Declared { columns, order, .. } = declared;
    let untils: Vec<i64> = lookups.iter().map(|lookup| micros(lookup.until)).collect();
    let (mut names, mut lists, mut conditions) = (String::new(), String::new(), declared.and());
    for (n, column) in columns.iter().enumerate() {
        let is_column = |one: &&Column<Task>| one.name == *column;
        let kind =
            Task::COLUMNS.iter().find(is_column).map_or("text[]", |column| columns::list(column.kind).0);
        let kind = kind.trim_end_matches("[]");
        _ = write!(names, ", c{n}");
        _ = write!(lists, ", ${}::text[]", n + 4);
        _ = write!(conditions, " AND t.{column} = a.c{n}::{kind}");
    }
    if let (Some(at), true) = (order.first(), untils.iter().any(|until| *until > 0)) {
        _ = write!(conditions, " AND t.{at} <= a.until");
    }
    let order = if order.is_empty() { String::new() } else { format!("ORDER BY {}", order.join(", ")) };
    // A task stays while an open transaction adds a downstream to it.
    let lock = if number == index::Ended::NUMBER && scope.writes { "FOR UPDATE SKIP LOCKED" } else { "" };
    let sql = format!(
        "SELECT a.n, l.* FROM unnest($2::bigint[], $3::bigint[]{lists}) WITH ORDINALITY AS a (most, until{names}, n), \
         LATERAL (SELECT {} FROM interval_queue_task AS t WHERE t.queue = $1{conditions} \
         {order} LIMIT a.most {lock}) AS l",
        *SELECTED
    );
    let mut query = query(scope, sql).with(limits(&lookups), Type::INT8_ARRAY).with(untils, Type::INT8_ARRAY);
    for n in 0..columns.len() {
        let values = lookups.iter().filter_map(|lookup| match &lookup.target {
            Target::Look(_, values) => values.get(n).cloned(),
            _ => None,
        });
        query = query.with(values.collect::<Vec<_>>(), Type::TEXT_ARRAY);
    }
    lookup_query(lookups, query, |reader| read_task(reader), LookupResult::Tasks).tasks()
}

fn instants(scope: Scope, number: usize, lookup: Lookup) -> LookupQuery {
    let declared = &DECLARED[number];
    let (at, condition) = (declared.order.first().unwrap_or(&"id"), declared.and());
    let sql = format!(
        "SELECT 1::bigint, t.{at}, t.id FROM interval_queue_task AS t WHERE t.queue = $1{condition} \
         ORDER BY t.{at} LIMIT $2"
    );
    let query = query(scope, sql).with(i64::from(lookup.limit), Type::INT8);
    let read = |reader: &mut Reader<'_>| Ok((reader.read()?, reader.read()?));
    lookup_query(vec![lookup], query, read, LookupResult::Instants)
}

fn next_key(scope: Scope, lookup: &Lookup, after: Option<&Key>) -> LookupQuery {
    let sql = "SELECT 1::bigint, min(k.key) FROM (\
               (SELECT t.key FROM interval_queue_task AS t WHERE t.queue = $1 AND t.holds_key AND t.key > $2 ORDER BY t.key LIMIT 1) \
               UNION ALL \
               (SELECT t.key FROM interval_queue_task AS t WHERE t.queue = $1 AND t.state = 'blocked' AND t.key > $2 \
               ORDER BY t.key LIMIT 1)) AS k";
    let query = query(scope, sql).with(after.map_or_else(String::new, Key::to_string), Type::TEXT);
    let to_result = |keys: Vec<Option<Key>>| LookupResult::NextKey(keys.into_iter().flatten().next());
    lookup_query(vec![lookup.clone()], query, |reader| reader.read(), to_result)
}

/// Kinds and priorities with ready tasks, found one after the other.
const PAIRS: &str = "pair AS (\
     (SELECT t.kind, t.priority, '-9223372036854775808'::bigint AS due FROM interval_queue_task AS t \
     WHERE t.queue = $1 AND t.state = 'ready' ORDER BY t.kind, t.priority LIMIT 1) \
     UNION ALL \
     SELECT n.kind, n.priority, p.due FROM pair AS p, LATERAL (SELECT t.kind, t.priority FROM interval_queue_task AS t \
     WHERE t.queue = $1 AND t.state = 'ready' AND (t.kind, t.priority) > (p.kind, p.priority) \
     ORDER BY t.kind, t.priority LIMIT 1) AS n)";

/// Kinds and priorities with ready tasks or a low-water mark. The pair after a priority is the next
/// one with a mark, or a lower one without a mark, so entries of pairs with a mark are not scanned.
const PAIRS_WITH_LOW_MARKS: &str = "low_mark AS MATERIALIZED (\
     SELECT f.kind, f.priority, f.due FROM interval_queue_task_low_mark AS f WHERE f.queue = $1), \
     pair AS (\
     SELECT k.kind COLLATE \"C\" AS kind, $4 - 1 AS priority, 0::bigint AS due FROM unnest($3) AS k (kind) \
     UNION ALL \
     SELECT p.kind, n.priority, n.due FROM pair AS p LEFT JOIN LATERAL (SELECT f.priority, f.due FROM low_mark AS f \
     WHERE f.kind = p.kind AND f.priority > p.priority ORDER BY f.priority LIMIT 1) AS f ON true, LATERAL (\
     (SELECT t.priority, '-9223372036854775808'::bigint AS due FROM interval_queue_task AS t \
     WHERE t.queue = $1 AND t.state = 'ready' AND t.kind = p.kind AND t.priority > p.priority \
     AND t.priority < coalesce(f.priority, 9223372036854775807) ORDER BY t.priority LIMIT 1) \
     UNION ALL SELECT f.priority, f.due WHERE f.priority IS NOT NULL LIMIT 1) AS n)";

/// The index orders the tasks of each kind and priority. There are few such pairs: they are found
/// one after the other, and their tasks are merged. Payloads are included unless they exceed their
/// share of a reply.
fn ready(scope: Scope, lookup: &Lookup, kinds: &[Kind], at_least: Option<i32>) -> LookupQuery {
    // Locked tasks are skipped.
    let (ahead, lock) = match scope.locks {
        Locks::Own => ("$2 * 5 + 20", "FOR NO KEY UPDATE SKIP LOCKED"),
        _ => ("$2", "OFFSET 0"),
    };
    let pairs = if scope.has_low_marks { PAIRS_WITH_LOW_MARKS } else { PAIRS };
    // Reads show no payloads.
    let payload = match scope.writes {
        true => format!(
            "CASE WHEN pg_column_size(t.payload) <= {MAX_REPLY} / greatest($2, 1) THEN t.payload::text END"
        ),
        false => "NULL::text".to_owned(),
    };
    let sql = format!(
        "WITH RECURSIVE {pairs}, \
         head AS (SELECT r.* FROM pair AS p, LATERAL (SELECT t.id, t.due, t.added, t.position FROM interval_queue_task AS t \
         WHERE t.queue = $1 AND t.state = 'ready' AND t.kind = p.kind AND t.priority = p.priority AND t.due >= p.due \
         ORDER BY t.due, t.added, t.position, t.id LIMIT {ahead}) AS r \
         WHERE p.kind = ANY ($3) AND p.priority >= $4 ORDER BY r.due, r.added, r.position, r.id LIMIT {ahead}) \
         SELECT 1::bigint, {}, {payload} \
         FROM head AS h, LATERAL (SELECT * FROM interval_queue_task AS t WHERE t.queue = $1 AND t.id = h.id \
         AND t.state || '' = 'ready' {lock}) AS t ORDER BY h.due, h.added, h.position, h.id LIMIT $2",
        *SELECTED
    );
    let kinds: Vec<String> = kinds.iter().map(Kind::to_string).collect();
    let query = query(scope, sql)
        .with(i64::from(lookup.limit), Type::INT8)
        .with(kinds, Type::TEXT_ARRAY)
        .with(i64::from(at_least.unwrap_or(i32::MIN)), Type::INT8);
    let lookup = lookup.clone();
    let add_rows = move |rows: &[&Row], read_set: &mut ReadSet| {
        let mut tasks = Vec::with_capacity(rows.len());
        for row in rows {
            let mut reader = Reader::of(row);
            reader.int()?;
            let task = read_task(&mut reader).map_err(|error| super::in_row(row, error))?;
            if let Some(payload) = reader.read()? {
                read_set.insert_if_absent(Target::Payload(task.id), LookupResult::Json(Some(payload)));
            }
            tasks.push(task);
        }
        super::insert_tasks(&tasks, read_set);
        read_set.insert(lookup.clone(), LookupResult::Tasks(tasks));
        Ok(())
    };
    LookupQuery { query, shape: RowShape::Payloads, add_rows: Box::new(add_rows) }
}
