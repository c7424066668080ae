//! Lookups by a selector: an index gives a bounded number of tasks in order, and the conditions
//! apply to these.

use interval_queue_task_contract::{
    Cursor, Kind, MAX_SCANNED, Order, State, Task,
    field::{RowReader as _, micros},
    record::read_task,
};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{Locks, LookupQuery, Scope, lookup_query, query};
use crate::tasks::{
    columns::{SELECTED, ids},
    row_reader::Reader,
    view::{Lookup, LookupResult, Selection},
};

/// Of the partial indexes that an order reads.
fn ranges(order: Order) -> Vec<String> {
    match order {
        Order::Oldest | Order::Newest => vec!["t.added IS NOT NULL".to_owned()],
        Order::Ended => {
            let of_state = |state| format!("t.state = '{state}' AND t.notified AND NOT t.retained");
            let states = State::ALL.into_iter().filter(|state| state.is_ended());
            let others = "t.ended IS NOT NULL AND (NOT t.notified OR t.retained)".to_owned();
            states.map(of_state).chain([others]).collect()
        }
    }
}

/// The first [`MAX_SCANNED`] tasks `s` of the queue $1 after the position ($2, $3). The server
/// merges the ranges, which an index has in order; each has a limit of its own, so that no plan
/// reads all of it.
fn following(order: Order) -> String {
    let (time, comparison, direction) = match order {
        Order::Oldest => ("added", ">", ""),
        Order::Newest => ("added", "<", " DESC"),
        Order::Ended => ("ended", "<", " DESC"),
    };
    let arms = ranges(order).into_iter().map(|range| {
        format!(
            "(SELECT t.* FROM interval_queue_task AS t WHERE t.queue = $1 AND {range} \
             AND (t.{time}, t.id) {comparison} ($2, $3) ORDER BY t.{time}{direction}, t.id{direction} LIMIT {MAX_SCANNED})"
        )
    });
    let arms = arms.collect::<Vec<_>>().join(" UNION ALL ");
    format!("({arms}) AS s ORDER BY s.{time}{direction}, s.id{direction}")
}

fn position(scope: Scope, sql: String, after: Cursor) -> crate::store::Query {
    query(scope, sql).with(micros(after.at), Type::INT8).with(after.id.uuid(), Type::UUID)
}

pub(super) fn scan_end(scope: Scope, lookup: &Lookup, after: Cursor) -> LookupQuery {
    let time = if after.order == Order::Ended { "ended" } else { "added" };
    let from = following(after.order);
    let sql = format!("SELECT 1::bigint, s.{time}, s.id FROM {from} LIMIT 1 OFFSET {}", MAX_SCANNED - 1);
    let read = |reader: &mut Reader<'_>| Ok((reader.read()?, reader.read()?));
    lookup_query(vec![lookup.clone()], position(scope, sql, after), read, LookupResult::Instants)
}

/// All transactions lock the tasks by id.
pub(super) fn select(scope: Scope, lookup: &Lookup, selection: &Selection) -> LookupQuery {
    let Selection { selector, after } = selection;
    let after = *after;
    let lock = if scope.locks == Locks::Update { " ORDER BY t.id FOR UPDATE OF t" } else { "" };
    let scan = match selector.ids.is_empty() {
        true => format!("SELECT s.* FROM {} LIMIT {MAX_SCANNED}", following(after.order)),
        // The position and the limit apply to them below.
        false => "SELECT t.* FROM unnest($19::uuid[]) AS a (id) JOIN interval_queue_task AS t \
                  ON t.queue = $1 AND t.id = a.id AND ($2::bigint, $3::uuid) IS NOT NULL"
            .to_owned(),
    };
    let limit = if selector.ids.is_empty() { "$4" } else { "$4 + 1000000" };
    let sql = format!(
        "SELECT 1::bigint, {} FROM (SELECT s.id FROM ({scan}) AS s WHERE ($5::text[] IS NULL OR s.kind = ANY ($5)) \
         AND CASE WHEN $6::text[] IS NULL THEN s.state <> 'purged' ELSE s.state = ANY ($6) END \
         AND ($7::text IS NULL OR s.key = $7) AND ($8::text IS NULL OR s.unique_name = $8) \
         AND ($9::text[] IS NULL OR s.tags ?& $9) AND ($10::uuid IS NULL OR s.worker = $10) \
         AND ($11::text IS NULL OR strpos(s.error, $11) > 0) AND ($12::bigint IS NULL OR s.added >= $12) \
         AND ($13::bigint IS NULL OR s.added < $13) AND ($14::bigint IS NULL OR s.ended >= $14) \
         AND ($15::bigint IS NULL OR s.ended < $15) AND ($16::text IS NULL OR s.schedule = $16) \
         AND ($17::text IS NULL OR right(s.id::text, length($17)) = $17) \
         AND ($18::text IS NULL OR strpos(s.payload::text, $18) > 0) AND ($19::uuid[] IS NULL OR true) \
         LIMIT {limit}) AS f \
         JOIN interval_queue_task AS t ON t.queue = $1 AND t.id = f.id{lock}",
        *SELECTED
    );
    let list = |words: Vec<String>| (!words.is_empty()).then_some(words);
    // PostgreSQL stores no NUL.
    let text = |text: &Option<String>| text.as_ref().map(|text| text.replace('\0', "\u{fffd}"));
    let mut named: Vec<Uuid> = ids(&selector.ids);
    named.sort_unstable();
    named.dedup();
    let query = position(scope, sql, after)
        .with(i64::from(lookup.limit), Type::INT8)
        .with(list(selector.kinds.iter().map(Kind::to_string).collect()), Type::TEXT_ARRAY)
        .with(list(selector.states.iter().map(State::to_string).collect()), Type::TEXT_ARRAY)
        .with(selector.key.as_ref().map(ToString::to_string), Type::TEXT)
        .with(selector.unique.as_ref().map(ToString::to_string), Type::TEXT)
        .with(list(selector.tags.iter().map(ToString::to_string).collect()), Type::TEXT_ARRAY)
        .with(selector.worker.map(|worker| worker.uuid()), Type::UUID)
        .with(text(&selector.error), Type::TEXT)
        .with(selector.added_from.map(micros), Type::INT8)
        .with(selector.added_before.map(micros), Type::INT8)
        .with(selector.ended_from.map(micros), Type::INT8)
        .with(selector.ended_before.map(micros), Type::INT8)
        .with(selector.schedule.as_ref().map(ToString::to_string), Type::TEXT)
        .with(selector.id_suffix.clone(), Type::TEXT)
        .with(text(&selector.payload), Type::TEXT)
        .with(named, Type::UUID_ARRAY);
    let limit = lookup.limit;
    let in_order = move |tasks: Vec<Task>| LookupResult::Tasks(after.first_after(tasks, limit));
    lookup_query(vec![lookup.clone()], query, |reader| read_task(reader), in_order)
}
