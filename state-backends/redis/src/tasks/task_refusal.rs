//! Decodes refusals of the script. A refused command has changed nothing. The texts are those of
//! the rules.

use interval_queue_contract::{Micros, StateError, StateErrorKind};
use interval_queue_task_contract::{Change, Command, Key, Settings, State, TaskId, rules, too_many_kinds};

use super::pack::{Packed, nonsense};

/// The error of a refusal: a word, then details.
///
/// # Errors
///
/// There is no such refusal.
pub(super) fn read(refusal: &Packed<'_>, command: &Command) -> Result<StateError, StateError> {
    let id = |n: usize| refusal.at(n).to::<TaskId>();
    let number = |n: usize| refusal.at(n).to::<u64>();
    let word = refusal.at(0).text()?;
    let (kind, text) = match (word, command) {
        ("no-queue", _) => return Ok(rules::no_queue()),
        ("payload", _) => (
            StateErrorKind::Invalid,
            format!(
                "the payload of task {} has {} bytes: this queue stores at most {}, so store what is large elsewhere and add \
                 where it is",
                id(1)?,
                number(2)?,
                number(3)?
            ),
        ),
        ("late", _) => (
            StateErrorKind::Conflict,
            format!(
                "task {} was first sent {:?} ago: it may have been added, run and forgotten since; add it under a new id if it \
                 has not",
                id(1)?,
                refusal.at(2).to::<Micros>()?.to_duration()
            ),
        ),
        ("name", _) => {
            let (name, state) = (refusal.at(2).to::<Key>()?, refusal.at(3).to::<State>()?);
            let text = format!(
                "task {} has the unique name {:?} and is in state {state}: nothing was added; wait until it has ended, \
                 cancel it, or keep or replace it",
                id(1)?,
                name.as_str()
            );
            (StateErrorKind::Conflict, text)
        }
        ("upstream", _) => (
            StateErrorKind::NotFound,
            format!(
                "task {} waits for {}, which is not stored here: name an earlier task of the batch, or one that is there",
                id(1)?,
                id(2)?
            ),
        ),
        ("linked", _) => {
            (StateErrorKind::NotFound, format!("task {} is not stored here: name one that is there", id(1)?))
        }
        ("import-upstream", _) => {
            let text =
                format!("task {} waits for {}, which is not stored here: import that first", id(1)?, id(2)?);
            (StateErrorKind::NotFound, text)
        }
        ("superseded", Command::Step(step)) => (
            StateErrorKind::Superseded,
            format!("step {} of worker {} came late: a newer one was obeyed", step.sequence, step.worker),
        ),
        ("id", Command::Fire(fire)) => (
            StateErrorKind::Invalid,
            format!(
                "task {} is to be {}: the id names schedule {} and its instant",
                id(1)?,
                id(2)?,
                fire.schedule
            ),
        ),
        ("settings", _) => {
            let settings = refusal.at(1).to::<Settings>()?;
            (StateErrorKind::Conflict, format!("the queue is there with other settings: {settings:?}"))
        }
        ("kinds", _) => return Ok(too_many_kinds(refusal.at(1).to()?).into()),
        ("no-schedule", Command::Change(Change::Unschedule(name))) => {
            (StateErrorKind::NotFound, format!("there is no schedule {:?} in this queue", name.as_str()))
        }
        ("no-worker", Command::Change(Change::DeclareLost(worker))) => {
            let text = format!("there is no worker {worker} in this queue that may hold tasks");
            (StateErrorKind::NotFound, text)
        }
        _ => return of_the_place(word, refusal),
    };
    Ok(StateError::new(kind, text))
}

/// The error of a refusal that comes from the store, not from a rule.
fn of_the_place(word: &str, refusal: &Packed<'_>) -> Result<StateError, StateError> {
    let (kind, text) = match word {
        "foreign" => (
            StateErrorKind::Foreign,
            format!("these are not the tasks of an interval queue: {}", refusal.at(1).text()?),
        ),
        "lost" => {
            let (key, rows) = (refusal.at(1).text()?, refusal.at(2).text()?);
            let text = format!(
                "redis has lost the key {key:?}, a part of the queue: it was evicted or deleted; restore it from a backup, or \
                 delete {rows:?} and all keys that begin with it to start over, and set maxmemory-policy noeviction"
            );
            (StateErrorKind::Damaged, text)
        }
        "newer" => (
            StateErrorKind::NewerVersion,
            format!(
                "the tasks are stored in layout {}, this program reads layout {}: upgrade it",
                refusal.at(1).to::<u64>()?,
                refusal.at(2).to::<u64>()?
            ),
        ),
        "older" => (
            StateErrorKind::Unsupported,
            format!(
                "the tasks are stored in layout {}, this program reads layout {}: finish them with the program that added \
                 them, or take another prefix",
                refusal.at(1).to::<u64>()?,
                refusal.at(2).to::<u64>()?
            ),
        ),
        "denied" => (
            StateErrorKind::Denied,
            format!(
                "the redis user may not run {} on the keys of the queue: extend its ACL",
                refusal.at(1).text()?
            ),
        ),
        _ => return Err(nonsense("it refuses for a reason that this program does not know")),
    };
    Ok(StateError::new(kind, text))
}
