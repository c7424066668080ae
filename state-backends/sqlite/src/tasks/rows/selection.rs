//! Lookups by a selector: an index gives a bounded number of tasks in order, and the conditions
//! apply to these.

use std::{collections::BTreeSet, sync::LazyLock};

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    Cursor, MAX_SCANNED, Order, Rows as _, Selector, State, Task, TaskId,
    field::{RowReader as _, micros, to_json},
    index::{self, Index as _},
};

use super::{columns::SELECTED, declared, row_reader::Reader, tables::Tables};
use crate::store::Fault;

struct Statements {
    select: String,
    end: String,
}

/// The indexes of an order, with the conditions of their ranges.
fn ranges(order: Order) -> Vec<String> {
    let all = index::declared();
    let of_index = |number: usize| all.get(number).map(declared::source).unwrap_or_default();
    match order {
        Order::Oldest | Order::Newest => vec![of_index(index::ByAdded::NUMBER)],
        Order::Ended => {
            let ended = of_index(index::Ended::NUMBER);
            let states = State::ALL.into_iter().filter(|state| state.is_ended());
            let of_states = states.map(|state| format!("{ended} AND state = '{state}'"));
            of_states.chain([of_index(index::EndedOther::NUMBER)]).collect()
        }
    }
}

/// At most [`MAX_SCANNED`] tasks after the position (?2, ?3). SQLite merges the ranges row by row,
/// since an index has each in the order.
fn statements(order: Order) -> Statements {
    let (time, comparison, direction) = match order {
        Order::Oldest => ("added", ">", "ASC"),
        Order::Newest => ("added", "<", "DESC"),
        Order::Ended => ("ended", "<", "DESC"),
    };
    let scan = |columns: &str| {
        let arms = ranges(order).into_iter().map(|range| {
            format!(
                "SELECT {columns} FROM interval_queue_task {range} AND ({time}, id) {comparison} (?2, ?3)"
            )
        });
        let arms = arms.collect::<Vec<_>>().join(" UNION ALL ");
        format!("{arms} ORDER BY {time} {direction}, id {direction} LIMIT")
    };
    let conditions = "(?5 IS NULL OR kind IN (SELECT value FROM json_each(?5))) \
         AND iif(?6 IS NULL, state <> 'purged', state IN (SELECT value FROM json_each(?6))) \
         AND (?7 IS NULL OR key = ?7) AND (?8 IS NULL OR unique_name = ?8) \
         AND (?9 IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(?9) AS wanted \
             WHERE wanted.value NOT IN (SELECT value FROM json_each(coalesce(tags, '[]'))))) \
         AND (?10 IS NULL OR worker = ?10) AND (?11 IS NULL OR instr(error, ?11) > 0) \
         AND (?12 IS NULL OR added >= ?12) AND (?13 IS NULL OR added < ?13) \
         AND (?14 IS NULL OR ended >= ?14) AND (?15 IS NULL OR ended < ?15) \
         AND (?16 IS NULL OR schedule = ?16) AND (?17 IS NULL OR substr(id, -length(?17)) = ?17) \
         AND (?18 IS NULL OR instr(coalesce(payload, \
             (SELECT body.payload FROM interval_queue_task_body AS body WHERE body.task = number)), ?18) > 0)";
    Statements {
        // SQLite returns the rows of a limited subquery in its order.
        select: format!(
            "SELECT {} FROM ({} {MAX_SCANNED}) WHERE {conditions} LIMIT ?4",
            *SELECTED,
            scan("*")
        ),
        end: format!("{} 1 OFFSET {}", scan(&format!("{time}, id")), MAX_SCANNED - 1),
    }
}

fn of_order(order: Order) -> &'static Statements {
    static ALL: LazyLock<[Statements; 3]> = LazyLock::new(|| Order::ALL.map(statements));
    // `Order::ALL` lists the variants as they are declared.
    &ALL[order as usize]
}

impl Tables<'_> {
    pub(super) fn selected(
        &mut self,
        selector: &Selector,
        after: Cursor,
        most: u32,
    ) -> Result<Vec<Task>, Fault> {
        if !selector.ids.is_empty() {
            let mut tasks = Vec::new();
            for id in selector.ids.iter().copied().collect::<BTreeSet<_>>() {
                tasks.extend(self.task(id)?.filter(|task| selector.matches(task)));
            }
            return Ok(after.first_after(tasks, most));
        }
        let queue = self.number()?;
        let states: Vec<_> = selector.states.iter().copied().map(State::as_str).collect();
        let params = rusqlite::params![
            queue,
            micros(after.at),
            after.id.to_string(),
            most,
            (!selector.kinds.is_empty()).then(|| to_json(&selector.kinds)),
            (!states.is_empty()).then(|| to_json(&states)),
            selector.key.as_ref().map(|key| key.as_str()),
            selector.unique.as_ref().map(|name| name.as_str()),
            (!selector.tags.is_empty()).then(|| to_json(&selector.tags)),
            selector.worker.map(|worker| worker.to_string()),
            selector.error.as_deref(),
            selector.added_from.map(micros),
            selector.added_before.map(micros),
            selector.ended_from.map(micros),
            selector.ended_before.map(micros),
            selector.schedule.as_ref().map(|name| name.as_str()),
            selector.id_suffix.as_deref(),
            selector.payload.as_deref(),
        ];
        self.tasks(&of_order(after.order).select, params)
    }

    /// The last task that a selection examines. `None`: it reaches the end.
    pub(super) fn end_of_scan(&mut self, after: Cursor) -> Result<Option<Cursor>, Fault> {
        let queue = self.number()?;
        let (sql, params) = (&of_order(after.order).end, (queue, micros(after.at), after.id.to_string()));
        let last = self.first(sql, params, |row| {
            let mut reader = Reader::of(row);
            Ok((reader.read::<Option<Micros>>()?, reader.read::<TaskId>()?))
        })?;
        Ok(last.and_then(|(at, id)| Some(Cursor { at: at?, id, ..after })))
    }
}
