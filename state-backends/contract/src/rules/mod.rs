//! All rules about tickets, slots and time, as one pure function.
//!
//! A backend makes [`apply`] atomic and adds nothing. Files: `clock` (steps of the store's clock),
//! `loss` (a lost or rolled-back record), `presence` (leases), `slot` (which ticket starts when),
//! `again` (lost replies), `wait` (when to request again), `step` and `change` (the commands that
//! write), `delete`.

mod again;
mod change;
mod clock;
mod delete;
mod loss;
mod presence;
mod slot;
mod step;
mod wait;

use crate::{Change, Command, Micros, Record, Reply, Snapshot, StateError, StateErrorKind};

/// Values that a backend reads while it holds the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The store's clock, shared by all processes.
    pub now: Micros,
    /// The server process that holds the record, if its restart may lose writes. Otherwise empty.
    pub incarnation: String,
}

impl Reading {
    /// The reading of a store without a server.
    pub fn of_clock(now: Micros) -> Self {
        Self { now, incarnation: String::new() }
    }
}

/// Executes one command on a record. Nothing else changes a record.
///
/// `record` is `None` if nothing is stored. If the result is `Ok` and the command is not
/// [`Command::Read`], store the record, or delete the stored one if it is now `None`.
///
/// # Errors
///
/// The record is unchanged. [`Invalid`](StateErrorKind::Invalid): the command breaks a bound.
/// [`NotFound`](StateErrorKind::NotFound): no such queue. [`Conflict`](StateErrorKind::Conflict):
/// the queue has other settings and was opened to fail then, or the condition of its deletion is
/// not met. [`Superseded`](StateErrorKind::Superseded): a newer step came before.
pub fn apply(record: &mut Option<Record>, reading: &Reading, command: &Command) -> Result<Reply, StateError> {
    command.check()?;
    match command {
        Command::Step(step) => step::apply(record, reading, step).map(Reply::Stepped),
        Command::Change(Change::Delete(deletion), _) => {
            delete::apply(record, reading, *deletion).map(Reply::Changed)
        }
        Command::Change(change, memory) => change::apply(record, reading, change, memory).map(Reply::Changed),
        Command::Read => Ok(Reply::Read(record.clone().map(|mut record| {
            let written_at = record.seen_at;
            let at = clock::arrive(&mut record, reading.now);
            // A read does not count as use.
            record.seen_at = written_at.min(at);
            Snapshot { at, record }
        }))),
    }
}

fn not_found() -> StateError {
    StateError::new(StateErrorKind::NotFound, "there is no such queue yet: open it with an interval")
}
