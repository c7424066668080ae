//! Low-water marks: the `due` from which lookups of ready tasks begin.
//!
//! The index of ready tasks keeps the entry of a leased task until the table is vacuumed. While
//! there are many, each kind and priority has a mark: the lowest `due` of its ready tasks.
//!
//! - Maintenance raises a mark to the first ready task, or to a second ago if there is none.
//! - A command that makes tasks ready lowers the mark in its own transaction.
//! - An `add` takes no locks, so it lowers no mark. Its tasks are due now, above the marks, unless
//!   its transaction stays open for longer than a second. So once a second a poll ignores the
//!   marks: a full scan.

use std::collections::BTreeMap;

use interval_queue_contract::Micros;
use interval_queue_task_contract::{Command, Kind, State, Task, field::micros};
use tokio_postgres::types::Type;

use super::{
    transaction::TransactionStart,
    view::{ReadSet, ReadyResult, Target, Written},
};
use crate::store::Query;

/// Behind the clock, while no task is ready.
const IDLE_LAG: Micros = Micros::from_millis(1_000);
const FULL_SCAN_INTERVAL: Micros = Micros::from_millis(1_000);
/// Numbers of dead rows, as counted by the server.
const DEAD_ROWS_TO_CREATE: i64 = 10_000;
const DEAD_ROWS_TO_DROP: i64 = 5_000;

/// For the kinds `$2` with at least the priority `$3`, on the row `q` of the queue. NULL: the queue
/// has no marks.
const LAST_FULL_SCAN: &str = "(SELECT min(CASE WHEN f.kind = ANY ($2) AND f.priority >= $3 THEN f.looked ELSE 9223372036854775807 END) \
     FROM interval_queue_task_low_mark AS f WHERE f.queue = q.number)";

/// The marks as one transaction has read them.
#[derive(Clone, Copy, Debug)]
pub(super) struct LowMarks {
    last_full_scan: Option<i64>,
}

impl LowMarks {
    pub(super) fn new(last_full_scan: Option<i64>) -> Self {
        Self { last_full_scan }
    }

    pub(super) fn exist(self) -> bool {
        self.last_full_scan.is_some()
    }

    /// A full scan is due. Removes the lookups that used marks from the read set.
    pub(super) fn need_full_scan(self, command: &Command, now: Micros, read_set: &mut ReadSet) -> bool {
        let now = micros(now);
        // A future instant was stored before the clock was set back.
        let are_old = self
            .last_full_scan
            .is_some_and(|at| at != i64::MAX && (at > now || at <= now - micros(FULL_SCAN_INTERVAL)));
        let is_full_scan = are_old && matches!(command, Command::Step(step) if step.limit() > 0);
        if is_full_scan {
            read_set.forget(|target| matches!(target, Target::Ready(..)));
        }
        is_full_scan
    }

    /// To the tasks that a command has made ready. Locks the marks in the order of kinds and
    /// priorities, after all other rows.
    pub(super) fn lower(self, start: &TransactionStart, written: &Written) -> Option<Query> {
        if !self.exist() {
            return None;
        }
        if written.queue.as_ref().is_some_and(|queue| queue.settings.ageing != start.ageing) {
            // New tasks may be due before those that are ready now.
            let sql = "DELETE FROM interval_queue_task_low_mark WHERE queue = $1";
            return Some(Query::new(sql).with(start.number, Type::INT8));
        }
        let first_dues = first_dues(written.after().filter(|task| task.state == State::Ready));
        if first_dues.is_empty() {
            return None;
        }
        let sql = "UPDATE interval_queue_task_low_mark AS f SET due = n.due \
                   FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS n (kind, priority, due) \
                   WHERE f.queue = $1 AND f.kind = n.kind AND f.priority = n.priority AND f.due > n.due";
        Some(with_first_dues(Query::new(sql).with(start.number, Type::INT8), &first_dues))
    }

    /// Requires a poll under the exclusive lock.
    pub(super) fn after_step(
        self,
        start: &TransactionStart,
        is_full_scan: bool,
        read_set: &ReadSet,
        written: &Written,
    ) -> Vec<Query> {
        let mut all = Vec::new();
        let is_maintenance = written.queue.is_some();
        if self.exist() && (is_maintenance || is_full_scan) {
            all.extend(read_set.ready().map(|result| raise(start, is_full_scan, result)));
        }
        all.extend(self.lower(start, written));
        if is_maintenance {
            all.extend(create(start.number, written));
        }
        if is_full_scan {
            let sql = format!(
                "DELETE FROM interval_queue_task_low_mark WHERE queue = $1 AND interval_queue_task_dead() < {DEAD_ROWS_TO_DROP}"
            );
            all.push(Query::new(sql).with(start.number, Type::INT8));
        }
        all
    }
}

/// To the first ready task, or near the clock if the lookup found all. The result of a full scan is
/// exact, and may also lower a mark.
fn raise(start: &TransactionStart, is_full_scan: bool, result: ReadyResult<'_>) -> Query {
    let sql = "UPDATE interval_queue_task_low_mark AS f \
               SET due = CASE WHEN $6 THEN n.due ELSE greatest(f.due, n.due) END, \
               looked = CASE WHEN $6 THEN $7 ELSE f.looked END \
               FROM (SELECT f.kind, f.priority, least(n.due, $8 - f.priority * $9) AS due \
               FROM interval_queue_task_low_mark AS f \
               LEFT JOIN unnest($2::text[], $3::bigint[], $4::bigint[]) AS n (kind, priority, due) \
               ON n.kind = f.kind AND n.priority = f.priority \
               WHERE f.queue = $1 AND f.kind = ANY ($10) AND f.priority >= $11 AND ($5 OR n.due IS NOT NULL)) AS n \
               WHERE f.queue = $1 AND f.kind = n.kind AND f.priority = n.priority AND ($6 OR f.due < n.due)";
    let query =
        with_first_dues(Query::new(sql).with(start.number, Type::INT8), &first_dues(result.tasks.iter()));
    let query = query
        .with(result.is_complete, Type::BOOL)
        .with(is_full_scan, Type::BOOL)
        .with(micros(start.now), Type::INT8)
        .with(micros(start.now) - micros(IDLE_LAG), Type::INT8)
        .with(micros(start.ageing), Type::INT8);
    with_kinds(query, result.kinds, result.at_least)
}

/// For the tasks that maintenance has leased or ended, if there are enough dead rows. The next full
/// scan raises them.
fn create(queue: i64, written: &Written) -> Option<Query> {
    let first_dues =
        first_dues(written.after().filter(|task| task.state == State::Leased || task.state.is_ended()));
    let sql = format!(
        "INSERT INTO interval_queue_task_low_mark (queue, kind, priority, due, looked) \
         SELECT $1, n.kind, n.priority, '-9223372036854775808', 0 \
         FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS n (kind, priority, due) \
         WHERE interval_queue_task_dead() > {DEAD_ROWS_TO_CREATE} ON CONFLICT DO NOTHING"
    );
    (!first_dues.is_empty()).then(|| with_first_dues(Query::new(sql).with(queue, Type::INT8), &first_dues))
}

pub(super) fn with_column(command: &Command, query: impl FnOnce(&str) -> Query) -> Query {
    match command {
        Command::Add(_) | Command::Read(_) => query("NULL::bigint"),
        Command::Step(step) => with_kinds(query(LAST_FULL_SCAN), &step.kinds, step.at_least),
        _ => with_kinds(query(LAST_FULL_SCAN), &[], None),
    }
}

fn with_kinds(query: Query, kinds: &[Kind], at_least: Option<i32>) -> Query {
    let kinds: Vec<String> = kinds.iter().map(Kind::to_string).collect();
    query.with(kinds, Type::TEXT_ARRAY).with(i64::from(at_least.unwrap_or(i32::MIN)), Type::INT8)
}

type FirstDues<'t> = BTreeMap<(&'t Kind, i32), i64>;

fn first_dues<'t>(tasks: impl Iterator<Item = &'t Task>) -> FirstDues<'t> {
    let mut first_dues = FirstDues::new();
    for task in tasks {
        let first = first_dues.entry((&task.kind, task.priority)).or_insert(task.due);
        *first = task.due.min(*first);
    }
    first_dues
}

fn with_first_dues(query: Query, first_dues: &FirstDues<'_>) -> Query {
    let kinds: Vec<String> = first_dues.keys().map(|(kind, _)| kind.to_string()).collect();
    let priorities: Vec<i64> = first_dues.keys().map(|&(_, priority)| priority.into()).collect();
    let dues: Vec<i64> = first_dues.values().copied().collect();
    let query = query.with(kinds, Type::TEXT_ARRAY).with(priorities, Type::INT8_ARRAY);
    query.with(dues, Type::INT8_ARRAY)
}
