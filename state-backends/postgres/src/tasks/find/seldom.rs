//! Looks of a step that goes beside others, which find something so seldom that one statement for all of them tells
//! whether they would.

use interval_queue_contract::Micros;
use interval_queue_task_contract::TaskId;
use tokio_postgres::{Row, types::Type};
use uuid::Uuid;

use super::{Gives, Place, Question, query};
use crate::tasks::{
    cells::Cells,
    overlay::{Ask, Found, Known, Look},
};

/// Ends that are to be told, tasks that wait for their time and tasks that were added if the step may admit some, tasks
/// of this worker that are to be stopped, and edges from tasks: the first one of each.
const FIRST: &str = "SELECT \
    (SELECT t.id FROM interval_queue_task AS t WHERE t.queue = $1 AND NOT t.notified AND t.ended IS NOT NULL ORDER BY t.id LIMIT 1), \
    CASE WHEN $4 THEN (SELECT t.not_before FROM interval_queue_task AS t WHERE t.queue = $1 AND t.state = 'scheduled' \
    ORDER BY t.not_before LIMIT 1) END, \
    CASE WHEN $4 THEN (SELECT t.id FROM interval_queue_task AS t WHERE t.queue = $1 AND t.state = 'added' \
    ORDER BY t.due LIMIT 1) END, \
    (SELECT t.id FROM interval_queue_task AS t WHERE t.queue = $1 AND t.worker = $2 AND t.stop IS NOT NULL \
    AND t.state = 'leased' ORDER BY t.id LIMIT 1), \
    (SELECT e.up FROM interval_queue_task_edge AS e WHERE e.queue = $1 AND e.up = ANY ($3) \
    AND (e.state = 'new' OR e.state = 'open') LIMIT 1)";

/// Which of the five it is.
fn place_of(look: &Look) -> Option<usize> {
    match look {
        Look::Unnotified => Some(0),
        Look::Scheduled => Some(1),
        Look::Added => Some(2),
        Look::ToStop(_) => Some(3),
        Look::UnnotifiedFrom(_, 0) => Some(4),
        _ => None,
    }
}

pub(in crate::tasks) fn is_seldom(ask: &Ask) -> bool {
    place_of(&ask.look).is_some()
}

/// Learns of each that it finds nothing, if it does. The others are left to be asked for.
pub(in crate::tasks) fn seldom(place: Place, asks: Vec<Ask>) -> Question {
    let worker = asks.iter().find_map(|ask| match ask.look {
        Look::ToStop(worker) => Some(worker.uuid()),
        _ => None,
    });
    let ups = asks.iter().filter_map(|ask| match ask.look {
        Look::UnnotifiedFrom(up, _) => Some(up),
        _ => None,
    });
    let ups: Vec<Uuid> = ups.map(TaskId::uuid).collect();
    let admits = asks.iter().any(|ask| ask.look == Look::Added);
    let query =
        query(place, FIRST).with(worker, Type::UUID).with(ups, Type::UUID_ARRAY).with(admits, Type::BOOL);
    let learn = move |rows: &[&Row], known: &mut Known| {
        for row in rows {
            let mut cells = Cells::of(row);
            for place in 0..5 {
                // None is scheduled before the first one.
                let until = match place {
                    1 => cells.some_micros()?.map_or(Micros::MAX, |first| first - Micros::new(1)),
                    _ if cells.some_id()?.is_some() => continue,
                    _ => Micros::MAX,
                };
                for ask in asks.iter().filter(|ask| place_of(&ask.look) == Some(place)) {
                    let found = if place == 4 { Found::Edges(Vec::new()) } else { Found::Tasks(Vec::new()) };
                    known.learn(Ask { until, ..ask.clone() }, found);
                }
            }
        }
        Ok(())
    };
    Question { query, gives: Gives::Others, learn: Box::new(learn) }
}
