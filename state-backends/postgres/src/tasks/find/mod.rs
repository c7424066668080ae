//! Looks in SQL: each is one statement, for all that are alike.
//!
//! The names of tables have no schema: each transaction searches its own first. The settings of a transaction leave the
//! server no plan without an index, see `transaction.rs`; which index it is follows from the conditions, which are as
//! those of the index.

mod edges;
pub(super) mod others;
mod seldom;
mod tasks;

use std::{collections::HashMap, mem::discriminant};

use interval_queue_contract::{StateError, StateErrorKind};
use interval_queue_task_contract::Task;
use tokio_postgres::{Row, types::Type};

use super::{
    cells::Cells,
    columns,
    overlay::{Ask, Found, Known, Look},
};
use crate::store::Query;

/// What rows are locked that are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Locks {
    /// None: it is a look, or nobody else may write.
    None,
    /// Tasks that others are to wait for must not go.
    KeyShare,
    /// The worker that steps, the tasks that it names, and those that are ready and that nobody has locked.
    Own,
    /// Selected tasks are to go, and none is added behind them.
    Update,
}

/// Where is looked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The number of the queue.
    pub(super) queue: i64,
    pub(super) locks: Locks,
    /// Whether what is found may be written: not in a transaction that only reads.
    pub(super) writes: bool,
    /// Whether it is looked for before the rules have asked for it.
    pub(super) is_ahead: bool,
    /// Whether looks for ready tasks begin at [floors](super::floors).
    pub(super) has_floors: bool,
}

/// A statement, and what is learned from its rows.
pub(super) struct Question {
    pub(super) query: Query,
    gives: Gives,
    learn: Box<Learn>,
}

/// What the rows of a statement are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gives {
    /// The number of a look and a task.
    Tasks,
    /// The same and its payload.
    Payloads,
    Others,
}

/// What is learned from the rows of a statement.
type Learn = dyn Fn(&[&Row], &mut Known) -> Result<(), StateError> + Send + Sync;

impl Question {
    pub(super) fn learn(&self, rows: &[Row], known: &mut Known) -> Result<(), StateError> {
        (self.learn)(&rows.iter().collect::<Vec<_>>(), known)
    }

    fn tasks(self) -> Self {
        Self { gives: Gives::Tasks, ..self }
    }
}

/// The statements for what is asked. Those of a step that goes beside others tell of some looks only that
/// they find nothing.
pub(super) fn questions(place: Place, mut asks: Vec<Ask>) -> Vec<Question> {
    let seldom: Vec<Ask> = match place.is_ahead && place.locks == Locks::Own {
        true => asks.extract_if(.., |ask| seldom::is_seldom(ask)).collect(),
        false => Vec::new(),
    };
    let mut alike: Vec<Vec<Ask>> = Vec::new();
    let mut known = HashMap::new();
    for ask in asks {
        let at = *known.entry(discriminant(&ask.look)).or_insert_with(|| {
            alike.push(Vec::new());
            alike.len() - 1
        });
        if let Some(group) = alike.get_mut(at) {
            group.push(ask);
        }
    }
    let mut all: Vec<Question> = alike.into_iter().flat_map(|asks| group(place, asks)).collect();
    if let Some(at) = all.iter().position(|question| question.gives != Gives::Others) {
        let (of_tasks, others): (Vec<_>, Vec<_>) =
            all.split_off(at).into_iter().partition(|question| question.gives != Gives::Others);
        all.push(fused(of_tasks));
        all.extend(others);
    }
    if !seldom.is_empty() {
        all.push(seldom::seldom(place, seldom));
    }
    all
}

/// All questions for tasks in one statement, since each costs the server more than what it finds: what they
/// ask is found, and locked, one after the other.
fn fused(questions: Vec<Question>) -> Question {
    let (mut queries, mut learn, mut gives) = (Vec::new(), Vec::new(), Vec::new());
    for question in questions {
        queries.push(question.query);
        learn.push(question.learn);
        gives.push(question.gives);
    }
    let query = Query::fused(queries, |texts| {
        let arms = texts.iter().zip(gives).enumerate().map(|(n, (text, gives))| {
            let payload = if gives == Gives::Tasks { ", NULL::text" } else { "" };
            format!("SELECT s.*{payload}, {n}::bigint AS question FROM ({text}) AS s")
        });
        arms.collect::<Vec<_>>().join(" UNION ALL ")
    });
    let learn = move |rows: &[&Row], known: &mut Known| {
        let mut answers: Vec<Vec<&Row>> = learn.iter().map(|_| Vec::new()).collect();
        for row in rows {
            let question: i64 = row.try_get(row.len() - 1).unwrap_or(-1);
            let answer = usize::try_from(question).ok().and_then(|question| answers.get_mut(question));
            answer.into_iter().for_each(|answer| answer.push(row));
        }
        learn.iter().zip(answers).try_for_each(|(learn, answer)| learn(&answer, known))
    };
    Question { query, gives: Gives::Others, learn: Box::new(learn) }
}

fn group(place: Place, asks: Vec<Ask>) -> Vec<Question> {
    let Some(first) = asks.first() else { return Vec::new() };
    match first.look {
        // It is found with the lock.
        Look::Queue => Vec::new(),
        Look::Task(_) | Look::Payload(_) | Look::Result(_) | Look::ByName(_) => {
            vec![tasks::named(place, asks)]
        }
        Look::LeasedOfKey(_)
        | Look::Holders(_)
        | Look::OrderedHolders(_)
        | Look::LastReadyHolder(_)
        | Look::Blocked(_)
        | Look::Line(_) => vec![tasks::of_keys(place, asks)],
        Look::From(..) | Look::UnnotifiedFrom(..) | Look::To(..) | Look::Pending(_) => {
            vec![edges::edges(place, asks)]
        }
        Look::Presence(_)
        | Look::Presences
        | Look::Leases
        | Look::Kind(_)
        | Look::Kinds
        | Look::Key(_)
        | Look::UnevenKeys
        | Look::PausedKeys
        | Look::Schedule(_)
        | Look::Schedules
        | Look::Times(..)
        | Look::Events(_)
        | Look::LastEvent
        | Look::Counts
        | Look::Miscounted => vec![others::others(place, asks)],
        _ => asks.into_iter().map(|ask| tasks::page(place, ask)).collect(),
    }
}

/// A question for several looks, whose rows begin with the number of the look, from 1.
fn question<T: 'static>(
    asks: Vec<Ask>,
    query: Query,
    read: impl Fn(&mut Cells<'_>) -> Result<T, StateError> + Send + Sync + 'static,
    found: impl Fn(Vec<T>) -> Found + Send + Sync + 'static,
) -> Question {
    let learn = move |rows: &[&Row], known: &mut Known| {
        let mut all: Vec<Vec<T>> = asks.iter().map(|_| Vec::new()).collect();
        for row in rows {
            let mut cells = Cells::of(row);
            let which: usize = cells.number()?;
            let one = read(&mut cells).map_err(|error| in_row(row, error))?;
            if let Some(of_one) = which.checked_sub(1).and_then(|at| all.get_mut(at)) {
                of_one.push(one);
            }
        }
        for (ask, all) in asks.iter().zip(all) {
            let found = found(all);
            if let Found::Tasks(tasks) = &found {
                learn_tasks(tasks, known);
            }
            known.learn(ask.clone(), found);
        }
        Ok(())
    };
    Question { query, gives: Gives::Others, learn: Box::new(learn) }
}

/// The rules ask for tasks by their ids that they have found by something else.
fn learn_tasks(tasks: &[Task], known: &mut Known) {
    for task in tasks {
        known.learn_beside(Look::Task(task.id), Found::Task(Some(Box::new(task.clone()))));
    }
}

/// Says in which row a column cannot be used.
fn in_row(row: &Row, error: StateError) -> StateError {
    if error.kind() != StateErrorKind::Damaged {
        return error;
    }
    let which = columns::row_of(row);
    let text = format!(
        "postgres has a row of stored tasks that cannot be used ({which}): {error}: put it right, or remove the row"
    );
    StateError::new(StateErrorKind::Damaged, text)
}

/// A query whose first value is the number of the queue.
fn query(place: Place, sql: impl Into<std::borrow::Cow<'static, str>>) -> Query {
    Query::new(sql).with(place.queue, Type::INT8)
}

fn most(asks: &[Ask]) -> Vec<i64> {
    asks.iter().map(|ask| i64::from(ask.most)).collect()
}
