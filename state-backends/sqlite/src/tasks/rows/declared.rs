//! Statements that read a declared index in its order.

use std::sync::LazyLock;

use interval_queue_task_contract::index::{self, Declared, Index};

use super::columns::SELECTED;

/// Table, index and condition, as far as the columns.
pub(super) fn source(declared: &Declared) -> String {
    let (name, condition) = (declared.name, declared.and());
    format!("interval_queue_task INDEXED BY interval_queue_task_{name} WHERE queue = ?1{condition}")
}

/// Tasks, tasks up to an instant, and the first instant. Parameters: the queue, the limit, the
/// columns, the instant.
pub(super) fn statements<I: Index>() -> &'static [String; 3] {
    static ALL: LazyLock<Vec<[String; 3]>> = LazyLock::new(|| {
        let of = |declared: &Declared| {
            let source = source(declared);
            let columns: String =
                (3..).zip(declared.columns).map(|(n, column)| format!(" AND {column} = ?{n}")).collect();
            let (select, from) = (format!("SELECT {} FROM", *SELECTED), format!("{source}{columns}"));
            let Some(at) = declared.order.first() else {
                return [format!("{select} {from} LIMIT ?2"), String::new(), String::new()];
            };
            let end = format!("ORDER BY {} LIMIT ?2", declared.order.join(", "));
            let bound = declared.columns.len() + 3;
            [
                format!("{select} {from} {end}"),
                format!("{select} {from} AND {at} <= ?{bound} {end}"),
                format!("SELECT min({at}) FROM {source}"),
            ]
        };
        index::declared().iter().map(of).collect()
    });
    &ALL[I::NUMBER]
}
